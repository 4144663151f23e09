package biztalk

import (
	"strconv"
	"strings"
	"time"
)

// noServer is a fingerprint that no server has.
const noServer = "SHA256:0000000000000000000000000000000000000000000"

// pollingUnits are those in which an interval is given.
var pollingUnits = map[string]time.Duration{
	"": time.Second, "seconds": time.Second, "minutes": time.Minute, "hours": time.Hour,
}

// sftp translates a folder of a server. The key of the server has to be given: the file has it with a hash that is not safe any more.
func (e *endpoint) sftp() {
	e.adapter = "SFTP"
	host, name := e.properties["serveraddress"], e.properties["filemask"]
	if e.kind == kindSendPort {
		name = e.properties["targetfilename"]
	}
	if host != "" && name != "" {
		if port := e.properties["port"]; port != "" && port != "22" {
			host += ":" + port
		}
		folder := strings.Trim(e.properties["folderpath"], "/")
		if !strings.HasPrefix(e.properties["folderpath"], "/") {
			folder = strings.TrimRight("~/"+folder, "/")
		}
		e.address = "sftp://" + host + "/" + strings.TrimLeft(folder+"/", "/") + name
	}
	e.address = e.t.text(e.at, e.kind, e.name, e.address)
	user := e.properties["username"]
	e.setUser(user)
	if user == "" {
		e.settings["user"] = "unknown"
		e.stop(e.at, "the user", "the file gives none", "give user")
	}
	if e.properties["privatekey"] != "" || strings.EqualFold(e.properties["clientauthenticationmode"], "PublicKeyAuthentication") {
		variable := environmentName(e.name, "PRIVATE_KEY")
		e.secrets["private_key"] = "env:" + variable
		e.t.omit(e.at, e.kind, e.name, "the private key", "definitions hold no secrets",
			"set environment variable "+variable+" where the host runs, or name its file by file:/path")
		delete(e.secrets, "password")
	}
	variable := environmentName(e.name, "HOST_KEY")
	e.settings["host_key"] = []any{"${" + variable + "}"}
	e.t.variables[variable] = noServer
	e.stop(e.at, "the key of the server "+e.properties["sshserverhostkeyfingerprint"], "its fingerprint is needed with SHA-256",
		"set variable "+variable+" to what ssh-keyscan SERVER | ssh-keygen -lf - prints, when the partner has confirmed it")
	if e.kind == kindSendPort {
		if isTrue(e.properties["appendifexists"]) {
			e.stop(e.at, "appending", "a file of a server is not appended to", "a file for each message")
		}
		e.address = e.knownMacros(e.address)
		return
	}
	interval, err := strconv.Atoi(e.properties["pollinginterval"])
	unit := pollingUnits[strings.ToLower(e.properties["pollingintervalunit"])]
	if err == nil && interval > 0 && unit > 0 {
		e.settings["poll_interval"] = duration(time.Duration(interval) * unit)
	}
}
