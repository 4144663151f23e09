package sftp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/filename"
	"github.com/parley-broker/parley/internal/flow/adapter/folder"
)

// The secrets of the adapter.
const (
	passwordSecret   = "password"
	keySecret        = "private_key"
	passphraseSecret = "passphrase" // of the private key
)

// Server are the settings of a connection.
type Server struct {
	User    string           `json:"user"`
	HostKey []string         `json:"host_key"`
	Timeout adapter.Duration `json:"timeout"`
}

// receiveSettings are the settings of a location.
type receiveSettings struct {
	Server
	folder.Settings
}

func receiveDefaults() receiveSettings {
	s := receiveSettings{Server{Timeout: adapter.Duration(30 * time.Second)}, folder.Defaults()}
	s.PollInterval, s.StableFor = adapter.Duration(30*time.Second), adapter.Duration(5*time.Second)
	return s
}

// How a port writes a file.
const (
	create    = "create"
	overwrite = "overwrite"
)

// sendSettings are the settings of a port.
type sendSettings struct {
	Server
	Mode   string            `json:"mode"`
	Fsync  bool              `json:"fsync"`
	Macros map[string]string `json:"macros"`
}

func sendDefaults() sendSettings {
	return sendSettings{Server: Server{Timeout: adapter.Duration(30 * time.Second)}, Mode: create, Fsync: true}
}

func (s Server) checkLogin(secrets []string) []adapter.Problem {
	problems := adapter.NotBelow("timeout", s.Timeout, adapter.Duration(100*time.Millisecond))
	if s.User == "" {
		problems = append(problems, adapter.Problem{
			Path: []string{"settings", "user"}, Message: "the user is missing", Remedy: "Say as whom to log in.",
		})
	}
	if len(s.HostKey) == 0 {
		problems = append(problems, adapter.Problem{
			Path: []string{"settings", "host_key"}, Message: "the key of the server is missing, so that anybody could be it",
			Remedy: "Give its fingerprint, SHA256:..., as ssh-keygen -lf prints it, or its line of known_hosts.",
		})
	}
	for n, written := range s.HostKey {
		if _, err := readHostKey(written); err != nil {
			problems = append(problems, adapter.Problem{
				Path: []string{"settings", "host_key", strconv.Itoa(n)}, Message: err.Error(),
				Remedy: "Write a fingerprint, SHA256:..., as ssh-keygen -lf prints it, or a line of known_hosts.",
			})
		}
	}
	problems = append(problems, adapter.OnlySecrets(secrets, passwordSecret, keySecret, passphraseSecret)...)
	if !slices.Contains(secrets, passwordSecret) && !slices.Contains(secrets, keySecret) {
		problems = append(problems, adapter.Problem{
			Path: []string{"secrets"}, Message: "there is nothing to log in with", Remedy: "Give the secret private_key, or password.",
		})
	}
	return problems
}

// address is where a location or port is.
type address struct {
	host   string // host:port
	folder string // absolute, or from the folder of the user
	last   string // the mask, or the name with macros
}

// shown is the folder as people know it.
func (a address) shown() string {
	if path.IsAbs(a.folder) {
		return "sftp://" + a.host + a.folder
	}
	return "sftp://" + a.host + path.Join("/~", a.folder)
}

// readAddress reads sftp://host:port/folder/name; a folder that begins with ~ is that of the user.
func readAddress(written string) (address, []adapter.Problem) {
	wrong := func(message, remedy string) (address, []adapter.Problem) {
		return address{}, []adapter.Problem{{Path: []string{"address"}, Message: message, Remedy: remedy}}
	}
	const form = "Write sftp://host/folder/*.xml, with :port behind the host where it is not 22, and /~/ for the folder of the user."
	rest, found := strings.CutPrefix(written, "sftp://")
	host, place, hasPath := strings.Cut(rest, "/")
	if !found || !hasPath || host == "" || strings.ContainsRune(written, 0) {
		return wrong(fmt.Sprintf("the address %q is none of a folder on a server", written), form)
	}
	if strings.Contains(host, "@") {
		return wrong("the address has a user", "Give the user in the settings.")
	}
	if u, err := url.Parse("sftp://" + host); err != nil || u.Hostname() == "" {
		return wrong(fmt.Sprintf("the host %q cannot be read", host), form)
	} else if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "22")
	}
	dir, last := path.Split("/" + place)
	if last == "" || last == "." || last == ".." {
		return wrong(fmt.Sprintf("the address %q names a folder alone", written), "Say behind it which files.")
	}
	a := address{host: host, folder: path.Clean(dir), last: last}
	if home, isHome := strings.CutPrefix(a.folder+"/", "/~/"); isHome {
		a.folder = path.Clean("./" + home)
	}
	return a, nil
}

// targetOf reads the address of a port.
func targetOf(written string, own map[string]string) (address, filename.Template, []adapter.Problem) {
	a, problems := readAddress(written)
	if problems != nil {
		return a, filename.Template{}, problems
	}
	wrong := func(message, remedy string) (address, filename.Template, []adapter.Problem) {
		return a, filename.Template{}, []adapter.Problem{{Path: []string{"address"}, Message: message, Remedy: remedy}}
	}
	if strings.Contains(a.folder, "%") {
		return wrong("the folder of the address has a percent sign", "Macros stand in the name of the file alone.")
	}
	if strings.HasPrefix(a.last, filename.Reserved) {
		return wrong("names that begin with "+filename.Reserved+" are those of the adapter", "Let the name begin otherwise.")
	}
	template, problem := filename.Parse(a.last, own)
	if problem != nil {
		return wrong(problem.Message, problem.Remedy)
	}
	return a, template, nil
}

// check gives what is wrong with the definition of a location or port.
func check(direction adapter.Direction, written string, settings json.RawMessage, secrets []string) []adapter.Problem {
	if direction == adapter.Send {
		s := sendDefaults()
		problems := adapter.CheckSettings(settings, &s)
		problems = append(problems, s.checkLogin(secrets)...)
		problems = append(problems, adapter.OneOf("mode", s.Mode, create, overwrite)...)
		problems = append(problems, filename.CheckOwn(s.Macros)...)
		_, _, wrong := targetOf(written, s.Macros)
		return append(problems, wrong...)
	}
	s := receiveDefaults()
	problems := adapter.CheckSettings(settings, &s)
	problems = append(problems, s.checkLogin(secrets)...)
	problems = append(problems, s.Check()...)
	a, wrong := readAddress(written)
	problems = append(problems, wrong...)
	return append(problems, folder.CheckMask(a.last)...)
}

// checkEndpoint checks an address and settings where a receiver or sender is made; the host has checked secrets.
func checkEndpoint(direction adapter.Direction, e adapter.Endpoint) error {
	var errs []error
	for _, p := range check(direction, e.Address, e.Settings, []string{keySecret}) {
		errs = append(errs, fmt.Errorf("%s: %s. %s", strings.Join(p.Path, "."), p.Message, p.Remedy))
	}
	return errors.Join(errs...)
}
