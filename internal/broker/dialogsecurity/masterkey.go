package dialogsecurity

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/parley-broker/parley/internal/ownpath"
)

// The reasons why a secret of the database cannot be used, in the words of transmission_status (spec 6.12).
var (
	// ErrNoMasterKey means that the daemon has no master key at all.
	ErrNoMasterKey = errors.New("28054: the daemon has no master key: start it with --master-key FILE")
	// ErrOtherMasterKey means that the daemon has a master key, and the secret is sealed under another one.
	ErrOtherMasterKey = errors.New("28050: the secret is sealed under a master key that this daemon does not have")
	// ErrSpoiled means that the master key is the right one, and the secret was changed since.
	ErrSpoiled = errors.New("28051: the secret in the database was changed, the master key does not open it")
)

const (
	masterKeySize    = 32
	masterKeyIDSize  = 8
	sealedVersion    = 1
	gcmNonceSize     = 12
	sealedOverhead   = 1 + masterKeyIDSize + gcmNonceSize + gcmTagSize
	gcmTagSize       = 16
	masterKeyComment = "# Master key of Parley. It opens what is secret in its databases. The first key seals, all open.\n"
)

// MasterKeyID names a master key without revealing anything about it: the beginning of its SHA-256.
type MasterKeyID [masterKeyIDSize]byte

func (id MasterKeyID) String() string { return fmt.Sprintf("%x", id[:]) }

// MasterKeys are the keys under which secrets are sealed in the databases of a daemon. They live in a file that only the daemon
// may read, the first one seals and all of them open. The file is read again when a secret is sealed under an unknown one, so
// changing the key needs no restart. Safe for concurrent use.
type MasterKeys struct {
	path string

	mu      sync.Mutex
	current MasterKeyID
	keys    map[MasterKeyID]cipher.AEAD
}

// OpenMasterKeys reads the master keys in a file, which nobody but its owner may read.
func OpenMasterKeys(path string) (*MasterKeys, error) {
	k := &MasterKeys{path: path}
	if err := k.read(); err != nil {
		return nil, err
	}
	return k, nil
}

// CreateMasterKey makes a file with a new master key, unless there is one.
func CreateMasterKey(path string) error {
	if err := ownpath.Require("folder of the master key", filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create the folder of the master key: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the master key: %w", err)
	}
	_, err = file.WriteString(masterKeyComment + newMasterKeyLine())
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write the master key: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// AddMasterKey puts a new master key at the head of the file: from now on it seals, and the others still open.
func AddMasterKey(path string) error {
	text, err := readMasterKeyFile(path)
	if err != nil {
		return err
	}
	return replaceMasterKeyFile(path, masterKeyComment+newMasterKeyLine()+withoutComments(text))
}

// ForgetOldMasterKeys leaves only the key at the head of the file.
func ForgetOldMasterKeys(path string) error {
	text, err := readMasterKeyFile(path)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(withoutComments(text), "\n")
	return replaceMasterKeyFile(path, masterKeyComment+first+"\n")
}

func newMasterKeyLine() string {
	key := make([]byte, masterKeySize)
	rand.Read(key)
	return base64.StdEncoding.EncodeToString(key) + "\n"
}

func withoutComments(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			kept.WriteString(line + "\n")
		}
	}
	return kept.String()
}

func replaceMasterKeyFile(path, text string) error {
	if err := ownpath.Require("folder of the master key", filepath.Dir(path)); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new*")
	if err != nil {
		return fmt.Errorf("write the master key: %w", err)
	}
	// CreateTemp makes it readable by its owner alone.
	_, err = file.WriteString(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the master key: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

func readMasterKeyFile(path string) (string, error) {
	if err := ownpath.RequirePrivate(path); err != nil {
		return "", fmt.Errorf("read the master key: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the master key: %w", err)
	}
	return string(text), nil
}

func (k *MasterKeys) read() error {
	text, err := readMasterKeyFile(k.path)
	if err != nil {
		return err
	}
	keys, current := map[MasterKeyID]cipher.AEAD{}, MasterKeyID{}
	for line := range strings.Lines(withoutComments(text)) {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
		if err != nil || len(key) != masterKeySize {
			return fmt.Errorf("read the master key: a line of %s is no key: 32 bytes in base64", k.path)
		}
		sum := sha256.Sum256(key)
		id := MasterKeyID(sum[:masterKeyIDSize])
		if len(keys) == 0 {
			current = id
		}
		keys[id] = newGCM(key)
	}
	if len(keys) == 0 {
		return fmt.Errorf("read the master key: %s holds none", k.path)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys, k.current = keys, current
	return nil
}

// Current names the key that seals.
func (k *MasterKeys) Current() MasterKeyID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

func (k *MasterKeys) find(id MasterKeyID) (cipher.AEAD, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, ok := k.keys[id]
	return key, ok
}

// Seal seals a secret for one purpose; only Open for the same purpose gives it back.
func (k *MasterKeys) Seal(secret, purpose []byte) ([]byte, error) {
	if k == nil {
		return nil, ErrNoMasterKey
	}
	id := k.Current()
	key, _ := k.find(id)
	sealed := make([]byte, 0, sealedOverhead+len(secret))
	sealed = append(append(sealed, sealedVersion), id[:]...)
	sealed = sealed[:len(sealed)+gcmNonceSize]
	nonce := sealed[1+masterKeyIDSize:]
	rand.Read(nonce)
	return key.Seal(sealed, nonce, secret, purpose), nil
}

// Open opens what Seal has sealed.
//
// Errors: [ErrNoMasterKey], [ErrOtherMasterKey], [ErrSpoiled].
func (k *MasterKeys) Open(sealed, purpose []byte) ([]byte, error) {
	if k == nil {
		return nil, ErrNoMasterKey
	}
	if len(sealed) < sealedOverhead || sealed[0] != sealedVersion {
		return nil, ErrSpoiled
	}
	id := MasterKeyID(sealed[1 : 1+masterKeyIDSize])
	key, ok := k.find(id)
	if !ok {
		// It may have been changed since.
		if err := k.read(); err != nil {
			return nil, errors.Join(ErrOtherMasterKey, err)
		}
		if key, ok = k.find(id); !ok {
			return nil, fmt.Errorf("%w: %s", ErrOtherMasterKey, id)
		}
	}
	nonce := sealed[1+masterKeyIDSize : 1+masterKeyIDSize+gcmNonceSize]
	secret, err := key.Open(nil, nonce, sealed[1+masterKeyIDSize+gcmNonceSize:], purpose)
	if err != nil {
		return nil, ErrSpoiled
	}
	return secret, nil
}

// newGCM makes AES-256-GCM of a key that has the right length.
func newGCM(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("dialogsecurity: " + err.Error())
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic("dialogsecurity: " + err.Error())
	}
	return aead
}
