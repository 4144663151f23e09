package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/ownpath"
)

// Folder keeps the certificates of a broker: broker-0001.pem, broker-0002.pem and so on, each with its key. The one with the highest
// number that is valid is in use; those before it have led to it.
type Folder struct {
	path string

	mu      sync.Mutex
	current *Certificate
	readAt  time.Time
}

// rereadAfter is how old the certificate in use may be before the folder is read again.
const rereadAfter = time.Second

// ErrNoCertificate: a folder has no certificate yet.
var ErrNoCertificate = errors.New("there is no certificate yet: parley certificate create")

// DefaultPath is the folder in the user's data directory, $XDG_DATA_HOME or else ~/.local/share.
func DefaultPath() (string, error) {
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "parley", "identity"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the folder for the broker's key: %w; name one with --identity", err)
	}
	return filepath.Join(home, ".local", "share", "parley", "identity"), nil
}

// OpenFolder names a folder, which need not exist; "" is the default one.
func OpenFolder(path string) (*Folder, error) {
	if path == "" {
		var err error
		if path, err = DefaultPath(); err != nil {
			return nil, err
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("identity folder: %w", err)
	}
	return &Folder{path: path}, nil
}

// Path is the folder itself.
func (f *Folder) Path() string { return f.path }

var certificateFile = regexp.MustCompile(`^broker-(\d{4})\.pem$`)

// names gives the files, the oldest first.
func (f *Folder) names() ([]string, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the identity folder: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if certificateFile.MatchString(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func (f *Folder) read(name string) (*Certificate, error) {
	path := filepath.Join(f.path, name)
	if err := ownpath.RequirePrivate(path); err != nil {
		return nil, fmt.Errorf("read the broker's key: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the broker's key: %w", err)
	}
	c, err := decode(text, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// List gives all certificates, the newest first.
func (f *Folder) List() ([]*Certificate, error) {
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	list := make([]*Certificate, 0, len(names))
	for _, name := range slices.Backward(names) {
		c, err := f.read(name)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// Certificate gives the one in use: the newest that is valid now, or the newest of all when none is. It notices within a second
// that there is a new one.
//
// Errors: [ErrNoCertificate].
func (f *Folder) Certificate() (*Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.current != nil && now.Sub(f.readAt) < rereadAfter && now.Sub(f.readAt) >= 0 {
		return f.current, nil
	}
	list, err := f.List()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, ErrNoCertificate
	}
	f.current, f.readAt = list[0], now
	for _, c := range list {
		if Check(c.Leaf, now) == nil {
			f.current = c
			break
		}
	}
	return f.current, nil
}

// Create makes the first certificate, or gives the one that there is.
func (f *Folder) Create(config Config) (c *Certificate, isNew bool, err error) {
	if c, err = f.Certificate(); !errors.Is(err, ErrNoCertificate) {
		return c, false, err
	}
	config.Predecessor = nil
	if c, err = New(config); err != nil {
		return nil, false, err
	}
	switch err := f.add(c, 1); {
	case errors.Is(err, fs.ErrExist): // another one was faster
		c, err := f.Certificate()
		return c, false, err
	case err != nil:
		return nil, false, err
	}
	return c, true, nil
}

// Rotate makes a new certificate with a new key, which is used from now on, and which the one before it signs, unless that has
// expired or must not be believed any more.
func (f *Folder) Rotate(config Config, isCompromised bool) (*Certificate, error) {
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, ErrNoCertificate
	}
	old, err := f.Certificate()
	if err != nil {
		return nil, err
	}
	config.Predecessor = nil
	if !isCompromised && Check(old.Leaf, time.Now()) == nil {
		config.Predecessor = old
	}
	c, err := New(config)
	if err != nil {
		return nil, err
	}
	var number int
	if _, err := fmt.Sscanf(names[len(names)-1], "broker-%d.pem", &number); err != nil {
		return nil, fmt.Errorf("number of %s: %w", names[len(names)-1], err)
	}
	if err := f.add(c, number+1); err != nil {
		return nil, err
	}
	return c, f.prune(names)
}

// add stores a certificate under a number that is free, in one step.
func (f *Folder) add(c *Certificate, number int) error {
	text, err := c.encode()
	if err != nil {
		return err
	}
	// A key put in the place of ours would speak in our name.
	if err := ownpath.Require("identity folder", f.path); err != nil {
		return err
	}
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return fmt.Errorf("create the identity folder: %w", err)
	}
	temporary, err := os.CreateTemp(f.path, ".new-*") // mode 0600
	if err != nil {
		return fmt.Errorf("store the broker's key: %w", err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(text)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return fmt.Errorf("store the broker's key: %w", err)
	}
	// A link, unlike a renamed file, takes nobody's place.
	if err := os.Link(temporary.Name(), filepath.Join(f.path, fmt.Sprintf("broker-%04d.pem", number))); err != nil {
		return fmt.Errorf("store the broker's key: %w", err)
	}
	f.mu.Lock()
	f.current = nil
	f.mu.Unlock()
	return nil
}

// prune removes keys that have expired: nobody accepts them.
func (f *Folder) prune(names []string) error {
	for _, name := range names {
		c, err := f.read(name)
		if err != nil || !errors.Is(Check(c.Leaf, time.Now()), ErrExpired) {
			continue
		}
		if err := os.Remove(filepath.Join(f.path, name)); err != nil {
			return fmt.Errorf("remove an expired key: %w", err)
		}
	}
	return nil
}
