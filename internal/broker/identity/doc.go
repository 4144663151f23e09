// Package identity has the key and the certificate by which a broker proves its identity.
//
// A broker is known by its public key. The fingerprint, the SHA-256 of the key as it stands in the certificate
// (SubjectPublicKeyInfo), is what peers trust; the certificate around it gives the key its dates and, after a rotation, the
// signature of the key before it. So the chain that is shown is the certificate, and behind it those of the keys that have
// vouched for each other, the newest first.
//
// The keys that Parley makes are Ed25519. They live in a folder, one file for each with key and chain, so that a rotation is one
// rename and a daemon that reads meanwhile sees the old one or the new one. Keys of a certificate authority come in files of
// their own ([Files]).
package identity
