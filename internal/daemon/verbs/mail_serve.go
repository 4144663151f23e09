package verbs

import (
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
)

// NewMailServe makes parley mail serve.
func NewMailServe(a *verb.App) *cobra.Command {
	cmd := serveCommand(a, mailAlone)
	cmd.Short = "Run mail transport: receive by SMTP, categorize, send, report"
	cmd.Long = `Run mail transport for a database until Ctrl-C or SIGTERM. What it does is configured in the database: see parley mail apply.

Any number of daemons may work on one database. What one has in its hands when it is killed is sent by another when its lease is
over, half a minute after it was killed (--lease). Several daemons on one machine need a binding each (--binding). The role it logs in as
needs the right SERVE:
  select parley_mail.grant_right('SERVE', 'daemon');

The configuration names folders, files of certificates, Maildirs and sockets of the machine. The daemon uses those that are below a folder
given by --folders, and leaves out, with a finding of parley diagnose, what names others.

While resources are short it delays and refuses mail, step by step: see docs/mail/pressure.md. It is parley serve --mail
--broker=false; parley serve --mail runs mail beside the broker in one daemon, and has the flags of mail as --mail-spool and so on.`
	cmd.Example = `  parley mail serve --dsn postgres://daemon@db1/shop
  parley mail serve --dsn postgres://daemon@db1/shop --http 127.0.0.1:9188 --spool /var/spool/parley --body-cache 1073741824
  parley mail serve --dsn postgres://daemon@db1/shop --folders /etc/parley/tls --folders /srv/mail`
	return cmd
}
