package sftp

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/parleytest"
)

// remote is a server with a folder, behind a relay that can fail.
type remote struct {
	relay   *relay
	user    string
	folder  string
	hostKey string // a line of known_hosts
	key     string // the private key of the user
}

// servers are those that each rule is tested with.
var servers = map[string]func(t *testing.T) *remote{"in process": newDouble, "OpenSSH": newOpenSSH}

// each runs a rule with each server.
func each(t *testing.T, rule func(t *testing.T, r *remote)) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule(t, start(t))
		})
	}
}

func newKey(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, string(pem.EncodeToMemory(block))
}

const password = "open sesame"

// newDouble starts a server in this process, which knows a password too.
func newDouble(t *testing.T) *remote {
	t.Helper()
	host, _ := newKey(t)
	client, key := newKey(t)
	config := &ssh.ServerConfig{
		PasswordCallback: func(_ ssh.ConnMetadata, given []byte) (*ssh.Permissions, error) {
			if string(given) != password {
				return nil, errors.New("another password")
			}
			return nil, nil
		},
		PublicKeyCallback: func(_ ssh.ConnMetadata, given ssh.PublicKey) (*ssh.Permissions, error) {
			if string(given.Marshal()) != string(client.PublicKey().Marshal()) {
				return nil, errors.New("another key")
			}
			return nil, nil
		},
	}
	config.AddHostKey(host)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn, config)
		}
	}()
	return &remote{newRelay(t, listener.Addr().String()), "shop", t.TempDir(), "x " + string(ssh.MarshalAuthorizedKey(host.PublicKey())), key}
}

func serve(conn net.Conn, config *ssh.ServerConfig) {
	defer func() { _ = conn.Close() }()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		go func() {
			for request := range asked {
				_ = request.Reply(request.Type == "subsystem" && strings.HasSuffix(string(request.Payload), "sftp"), nil)
			}
		}()
		go func() {
			if server, err := sftp.NewServer(channel); err == nil {
				_ = server.Serve()
				_ = server.Close()
			}
		}()
	}
}

// newOpenSSH starts an sshd for this user, or where that is root for nobody.
func newOpenSSH(t *testing.T) *remote {
	t.Helper()
	path := mailtest.Program(t, "/usr/sbin/sshd", "PARLEY_TEST_REQUIRE_SSHD")
	folder, err := os.MkdirTemp("/tmp", "parley-sshd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	hostSigner, hostKey := newKey(t)
	client, key := newKey(t)
	as, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	var credential *syscall.Credential
	if as.Uid == "0" {
		if as, err = user.Lookup("nobody"); err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.ParseUint(as.Uid, 10, 32)
		gid, _ := strconv.ParseUint(as.Gid, 10, 32)
		credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	files := filepath.Join(folder, "files")
	err = errors.Join(
		os.WriteFile(filepath.Join(folder, "host"), []byte(hostKey), 0o600),
		os.WriteFile(filepath.Join(folder, "users"), ssh.MarshalAuthorizedKey(client.PublicKey()), 0o600),
		os.WriteFile(filepath.Join(folder, "config"), fmt.Appendf(nil, `ListenAddress 127.0.0.1
Port %s
HostKey %s/host
AuthorizedKeysFile %s/users
PidFile none
StrictModes no
UsePAM yes
PasswordAuthentication no
Subsystem sftp internal-sftp
`, port, folder, folder), 0o600), os.Mkdir(files, 0o700))
	if credential != nil {
		for _, one := range []string{folder, files, filepath.Join(folder, "host"), filepath.Join(folder, "users"), filepath.Join(folder, "config")} {
			err = errors.Join(err, os.Chown(one, int(credential.Uid), int(credential.Gid)))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	sshd := exec.Command(path, "-D", "-e", "-f", filepath.Join(folder, "config"))
	sshd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	var said strings.Builder
	sshd.Stderr = &said
	if err := sshd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sshd.Process.Kill()
		_ = sshd.Wait()
		if t.Failed() {
			t.Logf("sshd said:\n%s", said.String())
		}
	})
	address := "127.0.0.1:" + port
	parleytest.Until(t, "sshd listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return &remote{newRelay(t, address), as.Username, files, "x " + string(ssh.MarshalAuthorizedKey(hostSigner.PublicKey())), key}
}

// relay passes bytes on to a server, for as long as it may.
type relay struct {
	address string
	// left is how many bytes a client may send until its connection is cut; negative: any number.
	left    atomic.Int64
	sent    atomic.Int64
	isStill atomic.Bool // nothing is passed on
	dialled atomic.Int64
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	r := &relay{address: listener.Addr().String()}
	r.left.Store(-1)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			r.dialled.Add(1)
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			t.Cleanup(func() { _, _ = client.Close(), server.Close() })
			go func() {
				_, _ = io.Copy(client, server)
				_ = client.Close()
			}()
			go r.pass(client, server)
		}
	}()
	return r
}

func (r *relay) pass(client, server net.Conn) {
	defer func() { _, _ = client.Close(), server.Close() }()
	buffer := make([]byte, 16<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		for r.isStill.Load() {
			<-time.After(10 * time.Millisecond)
		}
		r.sent.Add(int64(n))
		if left := r.left.Load(); left >= 0 && r.left.Add(-int64(n)) < 0 {
			return
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// endpoint gives a location or port of a folder; settings are further ones.
func (r *remote) endpoint(name, settings string) adapter.Endpoint {
	s := map[string]any{"user": r.user, "host_key": []string{r.hostKey}, "timeout": "20 seconds"}
	if err := json.Unmarshal([]byte(settings), &s); err != nil {
		panic(err)
	}
	written, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return adapter.Endpoint{
		Name: "Orders", Address: "sftp://" + r.relay.address + r.folder + "/" + name, Settings: written,
		Permission: adapter.Permission{Connect: []string{"127.0.0.1:*"}}, Logger: slog.New(slog.DiscardHandler),
		Secret: func(_ context.Context, name string) (string, bool, error) { return r.key, name == keySecret, nil },
	}
}

func (r *remote) receiver(t *testing.T, settings string) *receiver {
	t.Helper()
	made, err := newReceiver(r.endpoint("*.xml", settings))
	if err != nil {
		t.Fatal(err)
	}
	return made.(*receiver)
}

// poll polls once.
func poll(t *testing.T, r *receiver, in adapter.Intake) {
	t.Helper()
	if _, err := r.Poll(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func (r *remote) sender(t *testing.T, name, settings string) *sender {
	t.Helper()
	made, err := newSender(r.endpoint(name, settings))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return made.(*sender)
}

func (r *remote) put(t *testing.T, name, body string) {
	t.Helper()
	file := filepath.Join(r.folder, name)
	if err := errors.Join(os.WriteFile(file, []byte(body), 0o666), os.Chmod(file, 0o666)); err != nil {
		t.Fatal(err)
	}
}

// files gives what is in the folder, by name, with its content.
func (r *remote) files(t *testing.T, under string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(r.folder, under))
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		body, err := os.ReadFile(filepath.Join(r.folder, under, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was taken meanwhile
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, entry.Name()+"="+shortened(string(body)))
	}
	return found
}

func shortened(body string) string {
	if len(body) > 20 {
		return fmt.Sprintf("%d bytes", len(body))
	}
	return body
}

func want(t *testing.T, what string, got, wanted []string) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("%s: %q, and not %q", what, got, wanted)
	}
}
