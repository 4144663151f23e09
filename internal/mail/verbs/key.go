package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/mail/signing"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/internal/verb"
)

// signingKey is the output of the commands for keys for programs; a stable format.
type signingKey struct {
	Domain    string `json:"domain"`
	Selector  string `json:"selector"`
	Algorithm string `json:"algorithm"`
	IsEnabled bool   `json:"is_enabled"`
	// RecordName and Record are the TXT record by which others know the key.
	RecordName string `json:"record_name"`
	Record     string `json:"record"`
}

func (k signingKey) name() string { return k.Domain + "/" + k.Selector }

// keyAlgorithms are the names of algorithms in the configuration.
var keyAlgorithms = map[string]string{"rsa": "RSA-SHA256", "ed25519": "ED25519-SHA256"}

func newMailKeyCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make and change the keys that sign mail (DKIM)",
		Long: `Make and change the keys that sign mail (DKIM). To change the key of a domain without a gap: create one under a new selector with
--disabled, publish its record, enable it when the record can be read everywhere, disable the old one, and remove the old record
a week later, when nothing that it has signed is under way any more.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMailKeyCreateCommand(a), newMailKeyListCommand(a),
		newMailKeyEnableCommand(a, "enable", "Sign with a key", true), newMailKeyEnableCommand(a, "disable", "Sign with a key no more", false))
	return cmd
}

func newMailKeyCreateCommand(a *verb.App) *cobra.Command {
	var selector, algorithm string
	var isDisabled bool
	cmd := &cobra.Command{
		Use:   "create DOMAIN",
		Short: "Make a key and print the record for the zone of the domain",
		Long: `Make a key for a domain, keep it in the database and print the TXT record for the zone. The private key is shown to nobody but
the daemon. Two keys, RSA and Ed25519, under two selectors sign each message twice: who does not know the one checks the other.`,
		Example: `  parley mail key create example.org
  parley mail key create example.org --algorithm ed25519 --selector e202601 --disabled`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kept, known := keyAlgorithms[algorithm]
			if !known {
				return verb.Usagef("--algorithm is rsa or ed25519")
			}
			key := signingKey{
				Domain: strings.ToLower(args[0]), Selector: selector, Algorithm: kept, IsEnabled: !isDisabled,
			}
			if key.Selector == "" {
				key.Selector = algorithm[:1] + time.Now().UTC().Format("20060102")
			}
			private, record, err := signing.NewKey(algorithm)
			if err != nil {
				return fmt.Errorf("make the key: %w", err)
			}
			key.RecordName, key.Record = key.Selector+"._domainkey."+key.Domain, record
			return a.WithConnection(cmd.Context(), func(conn *pgx.Conn) error {
				if err := createKey(cmd.Context(), conn, key, private); err != nil {
					return err
				}
				if a.JSON {
					return verb.EncodeJSON(cmd.OutOrStdout(), key)
				}
				return writeKeys(cmd.OutOrStdout(), []signingKey{key})
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&selector, "selector", "", "name of the key in the zone (default the first letter of the algorithm and the date)")
	flags.StringVar(&algorithm, "algorithm", "rsa", "rsa (2,048 bits) or ed25519")
	flags.BoolVar(&isDisabled, "disabled", false, "do not sign with it yet")
	return cmd
}

// createKey keeps a key. One that there is already stays: its record may be published.
func createKey(ctx context.Context, db parley.DB, key signingKey, private []byte) error {
	_, public, _ := strings.Cut(key.Record, "p=")
	settings, err := json.Marshal(map[string]any{
		"domain": key.Domain, "selector": key.Selector, "algorithm": key.Algorithm, "private_key": string(private), "public_key": public,
		"enabled": key.IsEnabled,
	})
	if err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	if err := mailstore.CreateObject(ctx, db, "signing key", key.name(), settings); err != nil {
		return fmt.Errorf("keep the key: %w", err)
	}
	return nil
}

func newMailKeyListCommand(a *verb.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Example: "  parley mail key list",
		Short:   "Show the keys and their records",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return verb.ShowAll(a, cmd, readKeys, writeKeys) },
	}
}

func readKeys(ctx context.Context, db parley.DB) ([]signingKey, error) {
	objects, err := mailstore.Objects(ctx, db, "signing key")
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	keys := make([]signingKey, 0, len(objects))
	for name, settings := range objects {
		var written struct {
			Domain, Selector, Algorithm string
			Public                      string `json:"public_key"`
			Enabled                     bool
		}
		if err := json.Unmarshal(settings, &written); err != nil {
			return nil, fmt.Errorf("read the key %s: %w", name, err)
		}
		key := signingKey{
			Domain: written.Domain, Selector: written.Selector, Algorithm: written.Algorithm, IsEnabled: written.Enabled,
			RecordName: written.Selector + "._domainkey." + written.Domain,
		}
		if written.Public != "" {
			key.Record = "v=DKIM1; k=" + strings.ToLower(strings.SplitN(written.Algorithm, "-", 2)[0]) + "; p=" + written.Public
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(x, y signingKey) int { return strings.Compare(x.name(), y.name()) })
	return keys, nil
}

func newMailKeyEnableCommand(a *verb.App, verb, short string, isEnabled bool) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " DOMAIN SELECTOR",
		Short:   short,
		Example: "  parley mail key " + verb + " example.org r20260101",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.WithConnection(ctx, func(conn *pgx.Conn) error {
				keys, err := readKeysByName(ctx, conn)
				if err != nil {
					return err
				}
				name, known := keys[strings.ToLower(args[0])+"/"+args[1]]
				if !known {
					return fmt.Errorf("there is no key of %s under the selector %s: see parley mail key list", args[0], args[1])
				}
				settings, err := json.Marshal(map[string]bool{"enabled": isEnabled})
				if err != nil {
					return fmt.Errorf("write the setting: %w", err)
				}
				if err := mailstore.AlterObject(ctx, conn, "signing key", name, settings); err != nil {
					return fmt.Errorf("change the key: %w", err)
				}
				return nil
			})
		},
	}
}

// readKeysByName gives the names of the objects of keys, by domain and selector.
func readKeysByName(ctx context.Context, db parley.DB) (map[string]string, error) {
	objects, err := mailstore.Objects(ctx, db, "signing key")
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	names := make(map[string]string, len(objects))
	for name, settings := range objects {
		var written struct{ Domain, Selector string }
		if err := json.Unmarshal(settings, &written); err != nil {
			return nil, fmt.Errorf("read the key %s: %w", name, err)
		}
		names[written.Domain+"/"+written.Selector] = name
	}
	return names, nil
}

// writeKeys writes records as a zone file takes them: strings of up to 255 characters.
func writeKeys(out io.Writer, keys []signingKey) error {
	var errs []error
	for _, key := range keys {
		state := "signs"
		if !key.IsEnabled {
			state = "does not sign"
		}
		_, err := fmt.Fprintf(out, "; %s, %s\n", key.Algorithm, state)
		errs = append(errs, err)
		if key.Record == "" {
			_, err = fmt.Fprintf(out, "; the record of %s is not known: it was configured without public_key\n", key.RecordName)
			errs = append(errs, err)
			continue
		}
		var parts []string
		for rest := key.Record; rest != ""; {
			n := min(len(rest), 255)
			parts, rest = append(parts, `"`+rest[:n]+`"`), rest[n:]
		}
		_, err = fmt.Fprintf(out, "%s. IN TXT ( %s )\n", key.RecordName, strings.Join(parts, " "))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
