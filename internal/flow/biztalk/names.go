package biztalk

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// nameMost and roleMost are how long names may be, in bytes: of objects, and of roles of PostgreSQL.
const (
	nameMost = 200
	roleMost = 63
)

var (
	// token is a variable, as tools for deployment write it and as definitions do.
	token        = regexp.MustCompile(`\$?\$\{([^}]*)\}`) // with one $ more in front it is no token
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	notInRole    = regexp.MustCompile(`[^a-z0-9]+`)
	notInName    = regexp.MustCompile(`[^A-Z0-9]+`)
)

// name gives the name that an object has in definitions: its own, as far as that may be one.
func (t *translation) name(at *node, kind, written string) string {
	name := token.ReplaceAllString(written, "$1")
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r) || r == utf8.RuneError:
			return ' '
		case (r == '#' || r == '*') && (kind == kindSendPort || kind == kindReceiveLocation):
			return '-'
		}
		return r
	}, name)
	name = strings.TrimSpace(cut(strings.TrimSpace(name), nameMost))
	if name == "" {
		name = "unnamed"
	}
	if name != written {
		if t.renamed[kind] == nil {
			t.renamed[kind] = map[string]string{}
		}
		if _, isKnown := t.renamed[kind][written]; !isKnown {
			t.renamed[kind][written] = name
			t.omit(at, kind, name, "the name "+written, "a name has 1 to 200 bytes, and no signs with a meaning of their own",
				"use the new name where programs and people name it")
		}
	}
	return name
}

// cut shortens a text to so many bytes, at a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// text gives a text of a file as a value of definitions. A token such as ${FOLDER}, which tools for deployment replace, is a variable, and
// somebody has to give its value.
func (t *translation) text(at *node, kind, name, written string) string {
	for _, found := range token.FindAllStringSubmatch(written, -1) {
		if _, isKnown := t.variables[found[1]]; isKnown || !variableName.MatchString(found[1]) || strings.HasPrefix(found[0], "$$") {
			continue
		}
		t.variables[found[1]] = nil
		t.omit(at, kind, name, "the value of ${"+found[1]+"}", "a tool for deployment has it",
			fmt.Sprintf("give it in the section variables, in environments/NAME.yaml, or by --set %s=VALUE", found[1]))
	}
	return written
}

// application makes an application, and gives its name.
func (t *translation) application(at *node) string {
	written := at.value("ApplicationName")
	if written == "" {
		written = t.settings.Application
	}
	name := t.name(at, kindApplication, written)
	t.add(kindApplication, name, object{})
	return name
}

// host makes a host with a role of its own, and gives its name.
func (t *translation) host(at, handler *node) string {
	written := handler.value("Name")
	if written == "" {
		written = "BizTalkServerApplication"
	}
	name := t.name(at, kindHost, written)
	if !t.add(kindHost, name, object{}) {
		return name
	}
	role := cut("flow_"+strings.Trim(notInRole.ReplaceAllString(strings.ToLower(name), "_"), "_"), roleMost)
	taken := map[string]bool{}
	for _, other := range t.roles {
		taken[other] = true
	}
	for n := 2; taken[role]; n++ {
		role = fmt.Sprintf("%s_%d", cut(role, roleMost-4), n)
	}
	t.roles[name] = role
	t.objects[kindHost][name]["role"] = role
	return name
}

// environmentName makes a name of an environment variable of texts.
func environmentName(parts ...string) string {
	name := strings.Trim(notInName.ReplaceAllString(strings.ToUpper(strings.Join(parts, "_")), "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

var (
	drive = regexp.MustCompile(`^([A-Za-z]):[\\/]`)
	share = regexp.MustCompile(`^(?:\\\\|//)([^\\/]+)[\\/]+([^\\/]+)`)
)

// file gives the path of a file of Windows as one of the host. Each drive and share is a variable: where it is mounted.
func (t *translation) file(at *node, kind, name, written string) string {
	variable, mounted, behind := "", "", written
	if found := drive.FindStringSubmatch(written); found != nil {
		variable, mounted = "DRIVE_"+strings.ToUpper(found[1]), "/mnt/"+strings.ToLower(found[1])
		behind = written[len(found[0]):]
	} else if found := share.FindStringSubmatch(written); len(found) > 2 && !token.MatchString(found[1]+found[2]) {
		variable = environmentName("SHARE", found[1], found[2])
		mounted = "/mnt/" + strings.ToLower(found[1]+"/"+strings.TrimSuffix(found[2], "$"))
		behind = strings.TrimLeft(written[len(found[0]):], `\/`)
	}
	behind = t.text(at, kind, name, strings.ReplaceAll(behind, `\`, "/"))
	if variable == "" {
		return behind
	}
	if _, isKnown := t.variables[variable]; !isKnown {
		t.variables[variable] = mounted
		t.omit(at, kind, name, "the path "+written, "the host sees files where its machine has them",
			fmt.Sprintf("set variable %s to the folder at which it is mounted; it is %s now", variable, mounted))
	}
	return "${" + variable + "}/" + behind
}
