package server

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/hostfolders"
	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/internal/mail/send"
	"github.com/parley-broker/parley/internal/mail/signing"
)

// settings are the configuration, as the parts of mail take it.
type settings struct {
	version    int64
	kinds      deliveryKinds
	fqdn       string
	postmaster string
	// reportCopies are codes whose reports are copied to the postmaster.
	reportCopies []string
	receive      *receive.Configuration
	sending      *sending
	stores       map[string]send.MailboxStore
	// keys sign for each domain.
	keys map[string][]signing.Key
	// receivers, folders and listeners are the ways in as they are written, and credentials the users that may log in.
	receivers   map[string]receiveConnector
	folders     map[object]folderSettings
	listeners   map[object]listenerSettings
	credentials map[string]credential
	// nodes are the daemons, as they were when the configuration was read.
	nodes []node
	// unusable lists the objects that this daemon leaves out, by kind and name, and why.
	unusable map[object]error
	// passed are the beginnings of the queues of what this daemon leaves out and others may use.
	passed []string
	// hasServices is whether mail may go to services or tables of the database.
	hasServices bool
}

// object names an object of the configuration.
type object struct{ kind, name string }

func (o object) String() string { return o.kind + " " + o.name }

func (o object) compare(other object) int { return strings.Compare(o.String(), other.String()) }

// reading holds the helpers with which a configuration is read.
type reading struct {
	host string
	// names are those of this daemon and of its host.
	names   []string
	roots   *x509.CertPool
	folders *hostfolders.Folders
	// used is the configuration that is in use; nil is none.
	used *settings
}

// leaveOut decides what becomes of an object that cannot be used: a daemon that has no configuration yet leaves it out and starts; one
// that has keeps to that, and the error is why. It leaves out always what its operator does not permit, which is no fault of the object,
// and goes on leaving out what it left out before: the rest of the configuration does not wait for either.
func (r reading) leaveOut(s *settings, kind, name string, err error) error {
	of := object{kind, name}
	if r.used != nil && r.used.unusable[of] == nil && !errors.Is(err, hostfolders.ErrNotPermitted) {
		return fmt.Errorf("%s %q: %w", kind, name, err)
	}
	s.unusable[of] = err
	return nil
}

// isOurs reports whether something is for this daemon: no machine or daemon is named, or we are.
func (r reading) isOurs(nodes []string) bool {
	return len(nodes) == 0 || slices.ContainsFunc(nodes, func(node string) bool { return slices.Contains(r.names, node) })
}

// The objects of the configuration, by kind, as parley_mail._p_configuration gives them. Durations are in seconds.
type written struct {
	Version int64 `json:"version"`
	Ranges  []struct {
		Connector, Binding, Low, High string
	} `json:"ranges"`
	Nodes   []node        `json:"nodes"`
	Kinds   deliveryKinds `json:"kinds"`
	Objects struct {
		Organization map[string]organization     `json:"organization"`
		Receive      map[string]receiveConnector `json:"receive connector"`
		Send         map[string]sendConnector    `json:"send connector"`
		Groups       map[string]permissionGroup  `json:"permission group"`
		Domains      map[string]struct{}         `json:"accepted domain"`
		Stores       map[string]mailboxStore     `json:"mailbox store"`
		Keys         map[string]signingKey       `json:"signing key"`
		Credentials  map[string]credential       `json:"credential"`
		Pickup       map[string]folderSettings   `json:"pickup folder"`
		Replay       map[string]folderSettings   `json:"replay folder"`
		Listeners    map[string]listenerSettings `json:"http listener"`
		Services     map[string]struct{}         `json:"service binding"`
	} `json:"objects"`
}

type organization struct {
	DefaultDomain  string   `json:"default_domain"`
	FQDN           string   `json:"fqdn"`
	Postmaster     string   `json:"postmaster"`
	DSNCopies      []string `json:"dsn_copies"`
	MaxReceiveSize int64    `json:"max_receive_size"`
	MaxSendSize    int64    `json:"max_send_size"`
	MaxRecipients  int      `json:"max_recipients"`
	MaxConnections int      `json:"max_connections_per_node"`
	ConnectionRate int      `json:"connection_rate_per_node"`
	MaxHops        int      `json:"max_hops"`
	MaxLocalHops   int      `json:"max_local_hops"`
}

type mailboxStore struct {
	Driver          string `json:"driver"`
	Address         string `json:"address"`
	FullIsPermanent bool   `json:"full_is_permanent"`
	MaxConnections  int    `json:"max_connections"`
	MaxRecipients   int    `json:"max_recipients_per_message"`
	DuplicateWindow int    `json:"duplicate_window"`
}

type signingKey struct {
	Domain     string `json:"domain"`
	Selector   string `json:"selector"`
	PrivateKey string `json:"private_key"`
	Enabled    bool   `json:"enabled"`
}

// settings reads a configuration. Of the one that is in use is kept what has not changed.
func (r reading) settings(text json.RawMessage) (*settings, error) {
	var all written
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read the configuration of mail: %w", err)
	}
	own := all.Objects.Organization["organization"]
	s := &settings{
		version: all.Version, kinds: all.Kinds, fqdn: first(own.FQDN, own.DefaultDomain, r.host),
		reportCopies: own.DSNCopies,
		stores:       make(map[string]send.MailboxStore), unusable: make(map[object]error), keys: make(map[string][]signing.Key),
	}
	s.nodes, s.hasServices = all.Nodes, len(all.Objects.Services) > 0
	s.postmaster = first(own.Postmaster, "postmaster@"+first(own.DefaultDomain, s.fqdn))
	if err := all.readReceiving(s, r); err != nil {
		return nil, err
	}
	var err error
	if s.sending, err = r.sending(s, all.Objects.Send); err != nil {
		return nil, err
	}
	for name, written := range all.Objects.Stores {
		store, err := written.store(s.fqdn, r.folders)
		if err != nil {
			if err := r.leaveOut(s, "mailbox store", name, err); err != nil {
				return nil, err
			}
			s.passed = append(s.passed, s.kinds.queuesOf(object{"mailbox store", name})...)
			continue
		}
		s.stores[name] = store
		s.receive.IdentifiesMessages = s.receive.IdentifiesMessages || written.DuplicateWindow > 0
	}
	for name, written := range all.Objects.Keys {
		if !written.Enabled {
			continue
		}
		signer, err := signing.ParseKey([]byte(written.PrivateKey))
		if err != nil {
			if err := r.leaveOut(s, "signing key", name, err); err != nil {
				return nil, err
			}
			continue
		}
		s.keys[written.Domain] = append(s.keys[written.Domain], signing.Key{
			Domain: written.Domain, Selector: written.Selector, Signer: signer,
		})
	}
	return s, nil
}

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// store gives a store that stands below the folders given where it is of this host.
func (w mailboxStore) store(fqdn string, folders *hostfolders.Folders) (send.MailboxStore, error) {
	limits := send.Limits{Connections: w.MaxConnections}
	if w.Driver == "MAILDIR" {
		root, path, found := strings.Cut(w.Address, "{")
		if found {
			path = "{" + path
		}
		open := func() (*os.Root, error) { return folders.OpenRoot(root, 0o700) }
		return send.MailboxStore{Open: open, Path: path, Limits: limits}, folders.Check(root)
	}
	network, address := "tcp", w.Address
	if path, is := strings.CutPrefix(w.Address, "unix:"); is {
		network, address = "unix", path
		if err := folders.Check(path); err != nil {
			return send.MailboxStore{}, err
		}
	}
	return send.MailboxStore{
		Network: network, Address: address, Dial: folders.Dial, Hello: fqdn,
		Recipients: w.MaxRecipients, FullIsPermanent: w.FullIsPermanent, Limits: limits,
	}, nil
}
