package verbs

import (
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/broker/transport/router"
	"github.com/parley-broker/parley/internal/broker/verbs/trust"
	"github.com/parley-broker/parley/internal/mail/server"
)

func (s *serving) addExternalFlags(cmd *cobra.Command) {
	flags, e := cmd.Flags(), &s.External
	flags.StringArrayVar(&e.Program.Programs, "allow-program", nil,
		"full path of a program that queues may name, or of a folder of such programs; not of a shell (default none)")
	flags.StringArrayVar(&e.Program.Directories, "allow-program-directory", nil,
		"folder that programs may work in, besides their own (default none)")
	flags.StringArrayVar(&e.Program.Environment, "allow-program-environment", nil,
		"variable that queues may set for programs; * at the end stands for any ending (default none)")
	flags.StringVar(&e.ProgramDSN, "program-dsn", "",
		"connection string that programs are given, for a daemon of one database (default the one of --dsn)")
	flags.StringArrayVar(&e.WebhookPrefixes, "allow-webhook", nil,
		"beginning of web addresses that queues may name, such as https://a.example/; https://* for all public hosts (default none)")
	flags.Int32Var(&e.WebhookSessions, "webhook-sessions", 20, "requests to web addresses at once, for each database")
}

func (s *serving) addNetworkFlags(cmd *cobra.Command) {
	flags, n := cmd.Flags(), &s.Network
	flags.StringVar(&n.Address, "listen", "",
		"address of the broker endpoint, where brokers on other servers connect, such as :4022 (default: nothing goes over the network)")
	flags.StringVar((*string)(&s.advertised), "advertise", "", trust.AdvertiseUsage+"; sent to those that this daemon is paired with")
	flags.BoolVar(&n.Forward, "forward", false, "pass messages on to other servers where inbound routes say so")
	flags.Int64Var(&n.ForwardSizeMB, "forward-size", router.DefaultForwardSize>>20,
		"megabytes of messages that may be on their way through at a time; what comes on top is dropped, and sent again by its sender")
	flags.BoolVar(&n.Compress, "compress", false,
		"compress what goes to brokers that take it, for slow networks: it costs processor time at both ends")
	flags.StringVar(&n.Identity, "identity", "",
		"folder with the key and the certificate of this broker (default: that of parley certificate)")
	flags.StringVar(&n.Certificate, "certificate", "", "file with a certificate to use instead, with --certificate-key")
	flags.StringVar(&n.Key, "certificate-key", "", "file with its private key")
	flags.IntVar(&n.SocketsPerAddress, "connections-per-address", 128,
		"connections that one address may open; of IPv6 one network of 64 bits counts as one")
	flags.IntVar(&n.HandshakesPerAddress, "handshakes-per-address", 16,
		"how many of them may not have said yet who they are; a handshake takes ten seconds at most")
	s.masterKey.AddFlag(cmd)
	flags.BoolVar(&n.IsStrict, "strict-encryption", false,
		"as Service Broker: hold dialogs with encryption for which there is no remote service binding, though links are encrypted")
	flags.StringVar(&n.Authorities, "authorities", "", "file with certificates of authorities that may vouch for other brokers")
}

func (s *serving) addConsoleFlags(cmd *cobra.Command) {
	flags, c := cmd.Flags(), &s.Console
	c.Prefix = "console-"
	flags.StringVar(&c.Address, "console", "",
		"address to serve pages on, such as 127.0.0.1:7440, where people log in with roles of the databases (default: none)")
	flags.StringVar(&c.CertFile, "console-cert", "", "file of a certificate for the console, in PEM, with --console-key")
	flags.StringVar(&c.KeyFile, "console-key", "", "file of its key, in PEM")
	flags.BoolVar(&c.IsBehindProxy, "console-behind-proxy", false, "a proxy in front of the console speaks TLS with browsers")
	flags.BoolVar(&c.ReadOnly, "console-read-only", false, "the console shows everything and changes nothing")
}

// addMailFlags adds what mail transport may be asked for. In parley serve their names begin with a prefix.
func (s *serving) addMailFlags(cmd *cobra.Command, prefix string) {
	flags, m := cmd.Flags(), &s.Mail
	flags.StringVar(&m.Config.SpoolFolder, prefix+"spool", "", "folder for large messages while they arrive (default that of the system)")
	flags.Int64Var(&m.Config.BodyCache, prefix+"body-cache", 512<<20,
		"memory for bodies of messages between receipt and delivery, in bytes, 128 MB at least")
	flags.StringArrayVar(&m.Config.NameServers, prefix+"name-server", nil,
		"name server as host:port, may be given several times (default those of the system)")
	flags.StringArrayVar(&m.Config.Folders, prefix+"folders", nil,
		"folder of this machine, given by its full path, below which the configuration may name folders, files and sockets, may be given "+
			"several times (default: none, so that it may name none)")
	flags.StringVar(&m.Config.DataFolder, prefix+"data-folder", "",
		"folder on the volume of the database's data, which is watched (default that of a server on this machine)")
	flags.StringVar(&m.Config.LogFolder, prefix+"log-folder", "",
		"folder on the volume of the database's log, which is watched (default as above)")
	flags.StringArrayVar(&m.Bindings, prefix+"binding", nil,
		"listen on this binding of the receive connectors only, may be given several times (default all)")
	flags.DurationVar(&m.Config.Lease, prefix+"lease", server.DefaultLease,
		"how long what a daemon was sending waits for others when it was killed")
}
