// Package trust holds the statements of whom a database trusts: peers and their keys, pairing, certificates, and how dialogs are secured.
package trust
