package server

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/internal/mail/send"
	"github.com/parley-broker/parley/internal/mail/signing"
)

// settings are the configuration, as the parts of mail take it.
type settings struct {
	version    int64
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
	folders     map[string]folderSettings
	listeners   map[string]listenerSettings
	credentials map[string]credential
	// nodes are the daemons, as they were when the configuration was read.
	nodes []node
	// unusable is what this daemon leaves out, by kind and name, and why.
	unusable map[object]error
	// hasServices is whether mail may go to services or tables of the database.
	hasServices bool
}

// object names an object of the configuration.
type object struct{ kind, name string }

// leaveOut decides what becomes of an object that cannot be used: a daemon that has no configuration yet leaves it out and starts; one
// that has keeps to that, and the error is why.
func (s *settings) leaveOut(kind, name string, err error, isFirst bool) error {
	if !isFirst {
		return fmt.Errorf("%s %q: %w", kind, name, err)
	}
	s.unusable[object{kind, name}] = err
	return nil
}

// The objects of the configuration, by kind, as parley_mail._p_configuration gives them. Durations are in seconds.
type written struct {
	Version int64 `json:"version"`
	Ranges  []struct {
		Connector, Binding, Low, High string
	} `json:"ranges"`
	Nodes   []node `json:"nodes"`
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

// readSettings reads a configuration. Of used is kept what has not changed. With used, what cannot be used is an error: the daemon goes on
// with what it has. Without, which is nil, it is left out.
func readSettings(text json.RawMessage, host string, roots *x509.CertPool, used *sending) (*settings, error) {
	var all written
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read the configuration of mail: %w", err)
	}
	own := all.Objects.Organization["organization"]
	s := &settings{
		version: all.Version, fqdn: first(own.FQDN, own.DefaultDomain, host),
		reportCopies: own.DSNCopies,
		stores:       make(map[string]send.MailboxStore), unusable: make(map[object]error), keys: make(map[string][]signing.Key),
	}
	s.nodes, s.hasServices = all.Nodes, len(all.Objects.Services) > 0
	s.postmaster = first(own.Postmaster, "postmaster@"+first(own.DefaultDomain, s.fqdn))
	if err := all.readReceiving(s, used == nil); err != nil {
		return nil, err
	}
	var err error
	leaveOut := func(name string, err error) error { return s.leaveOut("send connector", name, err, used == nil) }
	if s.sending, err = readSending(all.Objects.Send, s.fqdn, roots, used, leaveOut); err != nil {
		return nil, err
	}
	for name, written := range all.Objects.Stores {
		s.stores[name] = written.store(s.fqdn)
		s.receive.IdentifiesMessages = s.receive.IdentifiesMessages || written.DuplicateWindow > 0
	}
	for name, written := range all.Objects.Keys {
		if !written.Enabled {
			continue
		}
		signer, err := signing.ParseKey([]byte(written.PrivateKey))
		if err != nil {
			if err := s.leaveOut("signing key", name, err, used == nil); err != nil {
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

func (w mailboxStore) store(fqdn string) send.MailboxStore {
	limits := send.Limits{Connections: w.MaxConnections}
	if w.Driver == "MAILDIR" {
		root, path, found := strings.Cut(w.Address, "{")
		if found {
			path = "{" + path
		}
		return send.MailboxStore{Root: root, Path: path, Limits: limits}
	}
	network, address := "tcp", w.Address
	if path, is := strings.CutPrefix(w.Address, "unix:"); is {
		network, address = "unix", path
	}
	return send.MailboxStore{
		Network: network, Address: address, Hello: fqdn, Recipients: w.MaxRecipients, FullIsPermanent: w.FullIsPermanent, Limits: limits,
	}
}
