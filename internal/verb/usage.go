package verb

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// UnknownSubcommand refuses a word behind a group of verbs that is none of them: by itself it would print the help of the group and
// succeed.
func UnknownSubcommand(root *cobra.Command, args []string) (*cobra.Command, error) {
	group, rest, err := root.Find(args)
	if err != nil || group.Runnable() || !group.HasParent() || group.ParseFlags(rest) != nil || group.Flags().NArg() == 0 {
		return nil, nil //nolint:nilerr // what is wrong here is reported when it is run
	}
	return group, NoSuchCommand(group, group.Flags().Arg(0))
}

// NoSuchCommand says which commands a group has in place of a word that is none of them.
func NoSuchCommand(group *cobra.Command, word string) error {
	if len(word) > 4 { // two letters of a shorter one are half of it
		group.SuggestionsMinimumDistance = 2
	}
	if like := group.SuggestionsFor(word); len(like) > 0 {
		return Usagef("%s has no command %q; did you mean %q?", group.CommandPath(), word, like[0])
	}
	var names []string
	for _, sub := range group.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return Usagef("%s has no command %q; it has %s", group.CommandPath(), word, strings.Join(names, ", "))
}

// How cobra says which flags go together, and which do not.
var (
	oneRequired = regexp.MustCompile(`^at least one of the flags in the group \[(.+)\] is required$`)
	together    = regexp.MustCompile(`^if any flags in the group \[(.+)\] are set they must all be set; missing \[(.+)\]$`)
	exclusive   = regexp.MustCompile(`^if any flags in the group \[.+\] are set none of the others can be; \[(.+)\] were all set$`)
)

// inWords says the same with the flags as they are written.
func inWords(err error) string {
	text := err.Error()
	if m := oneRequired.FindStringSubmatch(text); m != nil {
		return "give " + listed(m[1], "or")
	}
	if m := together.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s go together: give %s too", listed(m[1], "and"), listed(m[2], "and"))
	}
	if m := exclusive.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s exclude each other: give one of them", listed(m[1], "and"))
	}
	return text
}

func listed(names, conjunction string) string {
	flags := strings.Fields(names)
	for i := range flags {
		flags[i] = "--" + flags[i]
	}
	last := len(flags) - 1
	if last == 0 {
		return flags[0]
	}
	return strings.Join(flags[:last], ", ") + " " + conjunction + " " + flags[last]
}

// How the library refuses a duration: without any unit, with one that it does not know, and in no form that it knows.
var (
	unitless    = regexp.MustCompile(`^invalid argument "([0-9.]+)" for "(?:-\w, )?--([\w-]+)" flag: time: missing unit in duration`)
	unknownUnit = regexp.MustCompile(`^invalid argument ("[^"]*") for "(?:-\w, )?--([\w-]+)" flag: time: unknown unit ("[^"]*") in duration`)
	noDuration  = regexp.MustCompile(`^invalid argument ("[^"]*") for "(?:-\w, )?--([\w-]+)" flag: ` +
		`time: (?:invalid|missing unit in) duration`)
	noNumber = regexp.MustCompile(`^invalid argument ("[^"]*") for "(?:-\w, )?--([\w-]+)" flag: ` +
		`strconv\.Parse(Int|Uint|Float|Bool): parsing "[^"]*": (invalid syntax|value out of range)`)
	numberKinds = map[string]string{
		"Int": "a whole number", "Uint": "a whole number, 0 or more", "Float": "a number", "Bool": "true or false",
	}
	durationForm = "write a number with ms, s, m or h behind it, such as 90s, 1h30m or, for a day, 24h"
)

// ExplainFlag says of a flag that is not understood how it is written.
func ExplainFlag(_ *cobra.Command, err error) error {
	if m := unitless.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("--%[2]s %[1]s has no unit: write %[1]ss for seconds, or %[1]sms, %[1]sm, %[1]sh", m[1], m[2])
	}
	if m := unknownUnit.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("--%s %s: there is no unit %s: %s", m[2], m[1], m[3], durationForm)
	}
	if m := noDuration.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("--%s %s is no duration: %s", m[2], m[1], durationForm)
	}
	if m := noNumber.FindStringSubmatch(err.Error()); m != nil {
		if m[4] == "value out of range" {
			return fmt.Errorf("--%s %s is out of range: give %s that is nearer to zero", m[2], m[1], numberKinds[m[3]])
		}
		return fmt.Errorf("--%s %s: give %s", m[2], m[1], numberKinds[m[3]])
	}
	return err
}
