package catalog

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
	"github.com/parley-broker/parley/internal/verb"
)

// existsAlready is the broker's number for what is there and was to be created.
const existsAlready = 2714

func newActivationSetProgramCommand(a *verb.App) *cobra.Command {
	var variables []string
	var directory string
	var least, most int32
	var stopTimeout time.Duration
	var off bool
	cmd := &cobra.Command{
		Use:   "set-program QUEUE PROGRAM [ARGUMENT...]",
		Short: "Let a program read a queue",
		Long: `Let a program read a queue, or change the program that does. No shell reads the arguments; flags of the program stand behind --.

The program finds its queue in PARLEY_QUEUE and how to connect in PARLEY_DSN. It receives until it finds nothing and exits with 0; SIGTERM
asks it to leave. Flags that are not given keep what is set.`,
		Example: `  parley activation set-program shop --max 4 -- /opt/shop/reader --verbose
  parley activation set-program shop --off -- /opt/shop/reader`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := activationstore.ProgramActivation{Program: args[1:]}
			environment, err := readVariables(variables)
			if err != nil {
				return err
			}
			p.Environment = environment
			p.WorkingDirectory = verb.Given(cmd, "directory", directory)
			p.MinInstances = verb.Given(cmd, "min", least)
			p.MaxInstances = verb.Given(cmd, "max", most)
			p.StopTimeout = verb.Given(cmd, "stop-timeout", stopTimeout)
			p.Activation = verb.Given(cmd, "off", !off)
			return setActivation(a, cmd, args[0],
				func(ctx context.Context, conn *pgx.Conn) (*string, error) {
					return nil, activationstore.CreateProgramActivation(ctx, conn, args[0], p)
				},
				func(ctx context.Context, conn *pgx.Conn) error {
					return activationstore.AlterProgramActivation(ctx, conn, args[0], p)
				})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&variables, "env", nil, "variable for the program, NAME=VALUE; may be given several times")
	flags.StringVar(&directory, "directory", "", "full path of the folder to work in (default the folder of the program)")
	flags.Int32Var(&least, "min", 0, "how many always run")
	flags.Int32Var(&most, "max", 1, "how many run at most")
	flags.DurationVar(&stopTimeout, "stop-timeout", 10*time.Second, "time from SIGTERM to SIGKILL")
	flags.BoolVar(&off, "off", false, "start nothing for now")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}

func readVariables(list []string) (map[string]string, error) {
	if list == nil {
		return nil, nil
	}
	variables := map[string]string{}
	for _, variable := range list {
		name, value, ok := strings.Cut(variable, "=")
		if !ok {
			return nil, verb.Usagef("--env %s: write NAME=VALUE", variable)
		}
		variables[name] = value
	}
	return variables, nil
}

func newActivationSetWebhookCommand(a *verb.App) *cobra.Command {
	var secretFile, secretName, format string
	var timeout, firstRetry, longestRetry time.Duration
	var most, batch, groups, attempts int32
	var system, off bool
	cmd := &cobra.Command{
		Use:   "set-webhook QUEUE URL",
		Short: "Deliver the messages of a queue to a web address",
		Long: `Deliver the messages of a queue to a web address, or change how that is done. Each conversation keeps its order; what the address
does not accept is tried again, while others go on.

Requests are signed with a secret. A new one is printed when the webhook is created without --secret-file. Flags that are not given
keep what is set.`,
		Example: `  parley activation set-webhook shop https://shop.example.com/messages
  parley activation set-webhook shop https://shop.example.com/messages --batch 10 --max 8 --secret-file secret.txt`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := activationstore.WebhookActivation{
				URL:            &args[1],
				SecretName:     verb.Given(cmd, "secret-name", secretName),
				Timeout:        verb.Given(cmd, "timeout", timeout),
				MaxInstances:   verb.Given(cmd, "max", most),
				BatchSize:      verb.Given(cmd, "batch", batch),
				Groups:         verb.Given(cmd, "groups", groups),
				BodyFormat:     verb.Given(cmd, "format", format),
				SystemMessages: verb.Given(cmd, "system-messages", system),
				MaxAttempts:    verb.Given(cmd, "max-attempts", attempts),
				FirstRetry:     verb.Given(cmd, "first-retry", firstRetry),
				LongestRetry:   verb.Given(cmd, "longest-retry", longestRetry),
				Activation:     verb.Given(cmd, "off", !off),
			}
			if secretFile != "" {
				content, err := os.ReadFile(secretFile)
				if err != nil {
					return err
				}
				w.Secret = new(strings.TrimSpace(string(content)))
			}
			return setActivation(a, cmd, args[0],
				func(ctx context.Context, conn *pgx.Conn) (*string, error) {
					secret, err := activationstore.CreateWebhookActivation(ctx, conn, args[0], w)
					if err != nil || w.Secret != nil {
						return nil, err
					}
					return &secret, nil
				},
				func(ctx context.Context, conn *pgx.Conn) error {
					return activationstore.AlterWebhookActivation(ctx, conn, args[0], w)
				})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&secretFile, "secret-file", "", "file with the secret that signs requests, 16 to 500 characters")
	flags.StringVar(&secretName, "secret-name", "", "name of the secret, for people")
	flags.DurationVar(&timeout, "timeout", 15*time.Second, "how long one request may take")
	flags.Int32Var(&most, "max", 4, "requests at once, each of another conversation group")
	flags.Int32Var(&batch, "batch", 1, "messages in a request, at most")
	flags.Int32Var(&groups, "groups", 1, "conversation groups of which a request has messages, at most; up to --batch")
	flags.StringVar(&format, "format", "envelope", "envelope (JSON) or raw")
	flags.BoolVar(&system, "system-messages", false, "deliver EndDialog and Error too, instead of ending the conversation")
	flags.Int32Var(&attempts, "max-attempts", 10, "refusals after which a conversation is set aside; 0: never")
	flags.DurationVar(&firstRetry, "first-retry", time.Second,
		"how long a conversation waits after its first refusal; then twice as long each time")
	flags.DurationVar(&longestRetry, "longest-retry", 5*time.Minute, "how long it waits at most")
	flags.BoolVar(&off, "off", false, "deliver nothing for now")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}

// setActivation creates an activation, or alters the one that there is.
func setActivation(a *verb.App,
	cmd *cobra.Command, queue string,
	create func(context.Context, *pgx.Conn) (secret *string, err error), alter func(context.Context, *pgx.Conn) error,
) error {
	ctx := cmd.Context()
	conn, err := a.Attach(ctx)
	if err != nil {
		return err
	}
	defer verb.CloseConnection(ctx, conn)
	change := activationChange{Queue: queue, Change: "created"}
	change.Secret, err = create(ctx, conn)
	if number, _ := parley.ErrorNumber(err); number == existsAlready {
		change.Change = "altered"
		err = alter(ctx, conn)
	}
	if err != nil {
		return err
	}
	return reportActivation(a, cmd, change)
}
