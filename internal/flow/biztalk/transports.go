package biztalk

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// An endpoint is a receive location or a send port while it is translated.
type endpoint struct {
	t                *translation
	at               *node
	kind, name       string
	adapter, address string
	properties       map[string]string // of the adapter
	settings         object
	secrets          object
	isStopped        bool
}

// stop lists something without which the endpoint would not do what it did.
func (e *endpoint) stop(at *node, what, why, instead string) {
	e.isStopped = true
	e.t.omitStopping(at, e.kind, e.name, what, why, instead)
}

func (e *endpoint) put(settings object) {
	if len(e.settings) > 0 {
		settings["settings"] = e.settings
	}
	if len(e.secrets) > 0 {
		settings["secrets"] = e.secrets
	}
}

// readProperties reads the settings of the adapter, which stand as XML in the text of an element, and some in the text of an element of
// that.
func (e *endpoint) readProperties(at *node, names ...string) {
	e.properties = map[string]string{}
	written := ""
	var data *node
	for _, name := range names {
		if data == nil {
			data = at.child(name)
		}
		if written == "" {
			written = at.attrs[name]
		}
	}
	if data == nil && written != "" {
		data = &node{text: written, file: at.file, place: at.place}
	}
	if data == nil || strings.TrimSpace(data.text) == "" {
		return
	}
	root, err := data.parseWithin()
	if err != nil {
		e.stop(data, "the settings of the adapter", "they are no XML: "+err.Error(), "write them by hand")
		return
	}
	e.take(root)
}

func (e *endpoint) take(root *node) {
	for _, property := range root.children {
		if property.name.Local == "AdapterConfig" {
			if within, err := property.parseWithin(); err == nil {
				e.take(within)
			}
			continue
		}
		if len(property.children) > 0 {
			e.take(property)
			continue
		}
		e.properties[strings.ToLower(property.name.Local)] = strings.TrimSpace(property.text)
	}
}

// transports are the adapters that have a counterpart, by their names in small letters.
var transports = map[string]func(*endpoint){
	"file": (*endpoint).file, "http": (*endpoint).http, "wcf-webhttp": (*endpoint).webHTTP,
	"sftp": (*endpoint).sftp, "smtp": (*endpoint).smtp, "pop3": (*endpoint).pop3, "sql": (*endpoint).sql, "wcf-sql": (*endpoint).sql,
	"msmq": (*endpoint).queue, "msmqt": (*endpoint).queue, "wcf-netmsmq": (*endpoint).queue, "mqsc": (*endpoint).queue,
	"mqseries": (*endpoint).queue, "mqs": (*endpoint).queue,
}

const withoutSOAP = "the other end by HTTP without SOAP, or a program between"

// remedies say what there is in place of adapters without a counterpart.
var remedies = map[string]string{
	"wcf-basichttp": withoutSOAP, "wcf-wshttp": withoutSOAP, "soap": withoutSOAP,
	"wcf-nettcp":  "TCP with a length in front of each message, where the other end can be changed",
	"ftp":         "a program such as lftp that copies between the server and a folder, and FILE",
	"wcf-custom":  "the transport that its binding configures, by an adapter that there is",
	"nulladapter": "no port: a message that nobody wants needs none, but one without a subscription is suspended",
}

// translate finds the adapter and its settings. One that there is not keeps its name, and the endpoint does not run.
func (e *endpoint) translate() {
	name := strings.ToLower(strings.TrimSpace(e.adapter))
	if name == "wcf-custom" && strings.HasPrefix(strings.ToLower(e.properties["bindingtype"]), "sqlbinding") {
		name = "wcf-sql"
	}
	e.address = e.hideCredentials(e.address)
	if work, is := transports[name]; is {
		work(e)
	} else {
		if e.adapter == "" {
			e.adapter = "none"
		}
		instead := remedies[name]
		if instead == "" {
			instead = "an adapter that there is: FILE, HTTP, Mail, SFTP, TCP, PostgreSQL or Service; or a program that publishes and receives"
		}
		e.stop(e.at, "adapter "+e.adapter, "there is none of this name", instead)
		e.address = e.t.text(e.at, e.kind, e.name, e.address)
		e.hideSecrets()
	}
	if e.address == "" {
		e.address = "unknown"
		e.stop(e.at, "the address", "the file gives none", "give the address")
	}
	e.address = cut(e.address, 2000)
}

// passwordIn is a password in a connection string or in the query of an address.
var passwordIn = regexp.MustCompile(`(?i)[;&?]?[^;&?=/]*(password|pwd)\s*=[^;&]*`)

// hideCredentials takes the name and password out of an address.
func (e *endpoint) hideCredentials(address string) string {
	scheme, rest, isURL := strings.Cut(address, "://")
	if isURL {
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
			user, password, has := strings.Cut(rest[:at], ":")
			if name, err := url.PathUnescape(user); err == nil {
				user = name
			}
			if has && password != "" {
				e.setUser(user)
			}
			address = scheme + "://" + rest[at+1:]
		}
	}
	if without := passwordIn.ReplaceAllString(address, ""); without != address {
		address = without
		e.setPassword()
	}
	return address
}

func (e *endpoint) setUser(user string) {
	if user != "" {
		e.settings["user"] = e.t.text(e.at, e.kind, e.name, user)
	}
	if e.kind == kindSendPort && strings.HasPrefix(strings.ToLower(e.address), "http") {
		e.settings["authentication"] = "basic"
	}
	e.setPassword()
}

// setPassword makes a reference of a password: files have passwords in clear, or none because the export left it out.
func (e *endpoint) setPassword() {
	variable := environmentName(e.name, "PASSWORD")
	e.secrets["password"] = "env:" + variable
	e.t.omit(e.at, e.kind, e.name, "the password", "definitions hold no secrets",
		"set environment variable "+variable+" where the host runs, or name a file by file:/path")
}

// hideSecrets makes references of what else the properties have.
func (e *endpoint) hideSecrets() {
	if user := e.properties["username"]; user != "" {
		e.setUser(user)
	}
}

// macros stand in the names of files for values of the message.
var macros = []string{
	"%MessageID%", "%SourceFileName%", "%datetime%", "%datetime_bts2000%", "%datetime.tz%", "%time%", "%time.tz%",
}

func (e *endpoint) file() {
	e.adapter = "FILE"
	written := e.address
	if written == "" {
		name := e.properties["filemask"]
		if e.kind == kindSendPort {
			name = e.properties["filename"]
		}
		written = strings.TrimRight(e.properties["filepath"], `\/`) + `\` + name
	}
	e.address = e.t.file(e.at, e.kind, e.name, written)
	if user := e.properties["username"]; user != "" {
		e.t.omit(e.at, e.kind, e.name, "the account "+user, "the host reads and writes files as the account in which it runs",
			"mount the share with that account")
	}
	if e.kind == kindReceiveLocation {
		if ms, err := strconv.Atoi(e.properties["pollinginterval"]); err == nil && ms > 0 && ms != 60_000 {
			e.settings["poll_interval"] = duration(time.Duration(ms) * time.Millisecond)
		}
		e.setNumber("batch_count", e.properties["batchsize"], 20)
		e.setNumber("batch_bytes", e.properties["batchsizeinbytes"], 100<<10)
		mask := written[strings.LastIndexAny(written, `\/`)+1:]
		if strings.ToLower(mask) != strings.ToUpper(mask) { // names of Windows are the same in small letters and in capitals
			e.settings["ignore_case"] = true
		}
		return
	}
	if isTrue(e.properties["allowcacheonwrite"]) {
		e.settings["fsync"] = false
	}
	if mode := map[string]string{"0": "append", "2": "overwrite"}[e.properties["copymode"]]; mode != "" {
		e.settings["mode"] = mode
	}
	e.address = e.knownMacros(e.address)
}

// knownMacros writes the macros of a name as they are known here.
func (e *endpoint) knownMacros(name string) string {
	hasUnknown := false
	known := macro.ReplaceAllStringFunc(name, func(found string) string {
		for _, known := range macros {
			if strings.EqualFold(found, known) {
				return known
			}
		}
		hasUnknown = true
		return "%" + found + "%"
	})
	if hasUnknown {
		e.stop(e.at, "macros in the name "+name, "they have no meaning here", "use "+strings.Join(macros[:3], ", ")+
			", or give a property for it in the setting macros")
	}
	return known
}

// macro finds the macros of a name.
var macro = regexp.MustCompile(`%[A-Za-z0-9_.]+%`)

// setNumber takes a number over that is not the default.
func (e *endpoint) setNumber(setting, written string, defaultValue int) {
	if n, err := strconv.Atoi(written); err == nil && n > 0 && n != defaultValue {
		e.settings[setting] = n
	}
}

// duration writes a duration as definitions have it.
func duration(d time.Duration) string {
	if d%time.Second != 0 {
		return strconv.FormatInt(d.Milliseconds(), 10) + " milliseconds"
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + " seconds"
}

func (e *endpoint) http() {
	e.adapter = "HTTP"
	e.address = e.t.text(e.at, e.kind, e.name, e.address)
	if e.kind == kindReceiveLocation {
		path, _, _ := strings.Cut(e.address, "?")
		if at := strings.LastIndexByte(path, '/'); at >= 0 && strings.HasSuffix(strings.ToLower(path), ".dll") {
			path = path[:at]
		}
		e.listen(path)
		return
	}
	if seconds, err := strconv.Atoi(e.properties["requesttimeout"]); err == nil && seconds > 0 {
		e.settings["timeout"] = duration(time.Duration(seconds) * time.Second)
	}
	if written := e.properties["contenttype"]; written != "" && written != "text/xml" {
		e.settings["content_type"] = written
	}
	scheme := strings.ToLower(e.properties["authenticationscheme"])
	if scheme != "" && scheme != "anonymous" && scheme != "basic" {
		e.stop(e.at, "the authentication "+scheme, "HTTP is authenticated by name and password, bearer or certificate", "use one of these")
	}
	if certificate := e.properties["certificate"]; certificate != "" {
		e.stop(e.at, "the client certificate "+certificate, "it stands in a store of Windows", "export it, and name its files in the settings")
	}
	if isTrue(e.properties["useproxy"]) {
		e.stop(e.at, "the proxy "+e.properties["proxyname"], "HTTP goes straight", "reach the address without a proxy")
	}
	e.hideSecrets()
}

// listen makes the address of a location that takes requests in: its path, at the address where the host listens.
func (e *endpoint) listen(path string) {
	const variable = "HTTP_LISTEN"
	if _, isKnown := e.t.variables[variable]; !isKnown {
		e.t.variables[variable] = "http://127.0.0.1:8080"
		e.t.omit(e.at, e.kind, e.name, "the web server", "the host takes requests in itself",
			"set variable "+variable+" to where it listens; it is http://127.0.0.1:8080 now")
	}
	e.address = "${" + variable + "}/" + strings.TrimLeft(path, "/")
	e.settings["authentication"] = "none"
	e.stop(e.at, "who may call", "the web server knew it",
		"set authentication to bearer, basic or hmac with its callers, then enable the location")
}

func (e *endpoint) webHTTP() {
	e.adapter = "HTTP"
	e.address = e.t.text(e.at, e.kind, e.name, e.address)
	if e.kind == kindReceiveLocation {
		_, path, isURL := strings.Cut(e.address, "://")
		if isURL {
			_, path, _ = strings.Cut(path, "/")
		} else {
			path = e.address
		}
		e.listen(path)
	}
	mapping := &node{text: e.properties["httpmethodandurl"], file: e.at.file, place: e.at.place}
	operations := []*node{}
	if root, err := mapping.parseWithin(); err == nil {
		operations = root.all("Operation")
	}
	switch {
	case len(operations) == 1:
		method, path := operations[0].value("Method"), operations[0].value("Url")
		if strings.ContainsAny(path, "{}") {
			e.stop(e.at, "the address "+path, "addresses hold no properties of messages", "give one address")
			break
		}
		if e.kind == kindSendPort {
			if path != "" {
				e.address = strings.TrimRight(e.address, "/") + "/" + strings.TrimLeft(path, "/")
			}
			switch method = strings.ToUpper(method); method {
			case "", "POST":
			case "PUT", "PATCH":
				e.settings["method"] = method
			default:
				e.stop(e.at, "the method "+method, "a port sends a message in a request", "a program that asks, and publishes the answer")
			}
		}
	case strings.TrimSpace(mapping.text) != "":
		e.stop(e.at, "several operations with methods and addresses of their own", "a port has one address and method",
			"a port for each operation, with a filter")
	}
	if scheme := e.properties["transportclientcredentialtype"]; scheme != "" && scheme != "None" && scheme != "Basic" {
		e.stop(e.at, "the credentials "+scheme, "they belong to Windows", "use a certificate in files, a name and password, or a token")
	}
	if e.properties["httpheaders"] != "" && e.kind == kindSendPort {
		e.stop(e.at, "the headers", "they may hold secrets, and are not taken over", "give them in the settings")
	}
	e.hideSecrets()
}
