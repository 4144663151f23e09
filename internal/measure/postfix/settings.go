package postfix

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// mainSettings are Postfix's own defaults but for where things stand, whom it serves, and what would ask the network. So its log goes to
// that of the system: its postlogd, which logs to itself, can block with all that log, for ever, when many processes begin at once.
const mainSettings = `compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
mail_owner = {owner}
setgid_group = {group}
myhostname = relay.invalid
mydomain = invalid
mydestination =
local_recipient_maps =
alias_maps =
alias_database =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_peername_lookup = no
smtp_dns_support_level = disabled
disable_dns_lookups = yes
relayhost = {next}
transport_maps = inline:{ {routes} }
message_size_limit = 104857600
mailbox_size_limit = 0
biff = no
`

// services are those that a relay needs, as Debian has them but for chroot, which is off in Postfix's own defaults.
const services = `{listen} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
`

func chown(path, name string) error {
	account, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("find the account of Postfix: %w", err)
	}
	id, err := strconv.Atoi(account.Uid)
	if err != nil {
		return fmt.Errorf("read the account of Postfix: %w", err)
	}
	if err := os.Chown(path, id, -1); err != nil {
		return fmt.Errorf("give Postfix its folder: %w", err)
	}
	return nil
}
