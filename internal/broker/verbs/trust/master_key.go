package trust

import (
	"fmt"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/verb"
)

// MasterKeyFlag names the file with the master key.
type MasterKeyFlag struct{ path string }

// AddFlag adds the flag to a verb.
func (m *MasterKeyFlag) AddFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.path, "master-key", "",
		"file with the key that seals secrets in the database (default master.key in the folder of the identity, made when missing)")
}

// IsNamed reports whether the command line names the file.
func (m *MasterKeyFlag) IsNamed() bool { return m.path != "" }

// find gives the path of the file; folder is that of the identity, "" for the default one.
func (m *MasterKeyFlag) find(folder string) (string, error) {
	if m.path != "" {
		return m.path, nil
	}
	if folder == "" {
		var err error
		if folder, err = identity.DefaultPath(); err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, "master.key"), nil
}

// open reads the master key.
func (m *MasterKeyFlag) open() (*dialogsecurity.MasterKeys, error) { return m.OpenIn("") }

// OpenIn reads the master key. The file in the folder of the identity is made when it is missing; one that was named must be there.
func (m *MasterKeyFlag) OpenIn(folder string) (*dialogsecurity.MasterKeys, error) {
	path, err := m.find(folder)
	if err != nil {
		return nil, err
	}
	if m.path == "" {
		if err := dialogsecurity.CreateMasterKey(path); err != nil {
			return nil, err
		}
	}
	return dialogsecurity.OpenMasterKeys(path)
}

func newMasterKeyCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "master-key",
		Short: "Make and change the key that seals secrets in the database",
		Long: `The master key seals the private keys and session keys of dialog security and the secrets of webhooks, which are in the
database. It lives in a file that all daemons of a database have. Keep a copy of it: without it certificates and secrets have to be made
anew.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newMasterKeyCreateCommand(), newMasterKeyRotateCommand(a), newMasterKeySealCommand(a), newMasterKeyForgetCommand())
	return cmd
}

func newMasterKeyCreateCommand() *cobra.Command {
	var m MasterKeyFlag
	cmd := &cobra.Command{
		Use:     "create",
		Example: "  parley master-key create",
		Short:   "Make a file with a new master key, unless there is one",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := m.find("")
			if err != nil {
				return err
			}
			if err := dialogsecurity.CreateMasterKey(path); err != nil {
				return err
			}
			keys, err := dialogsecurity.OpenMasterKeys(path)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "master key %s is in %s\n", keys.Current(), path)
			}
			return err
		},
	}
	m.AddFlag(cmd)
	return cmd
}

func newMasterKeyRotateCommand(a *verb.App) *cobra.Command {
	var m MasterKeyFlag
	cmd := &cobra.Command{
		Use:     "rotate",
		Example: "  parley master-key rotate",
		Short:   "Put a new master key into the file and seal everything in the database under it",
		Long: `Put a new master key at the head of the file, and seal the secrets of the database under it. The old one stays in the
file, so that other databases, and backups, can still be opened.

With daemons on other hosts: copy the file to them at once; they read it again by themselves. With several databases: parley
master-key seal for each of the others, then parley master-key forget.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := m.find("")
			if err != nil {
				return err
			}
			return a.WithConnection(cmd.Context(), func(conn *pgx.Conn) error {
				if err := dialogsecurity.AddMasterKey(path); err != nil {
					return err
				}
				return sealAnew(cmd, conn, path)
			})
		},
	}
	m.AddFlag(cmd)
	return cmd
}

func newMasterKeySealCommand(a *verb.App) *cobra.Command {
	var m MasterKeyFlag
	cmd := &cobra.Command{
		Use:     "seal",
		Example: "  parley master-key seal",
		Short:   "Seal what is in the database under an old master key under the new one",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := m.find("")
			if err != nil {
				return err
			}
			return a.WithConnection(cmd.Context(), func(conn *pgx.Conn) error { return sealAnew(cmd, conn, path) })
		},
	}
	m.AddFlag(cmd)
	return cmd
}

func sealAnew(cmd *cobra.Command, conn *pgx.Conn, path string) error {
	keys, err := dialogsecurity.OpenMasterKeys(path)
	if err != nil {
		return err
	}
	changed, err := dialogsecurity.SealAnew(cmd.Context(), conn, keys)
	if err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "%s under master key %s\n", verb.Counted(changed, "secret"), keys.Current())
	}
	return err
}

func newMasterKeyForgetCommand() *cobra.Command {
	var m MasterKeyFlag
	cmd := &cobra.Command{
		Use:     "forget",
		Example: "  parley master-key forget",
		Short:   "Remove old master keys from the file",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := m.find("")
			if err != nil {
				return err
			}
			return dialogsecurity.ForgetOldMasterKeys(path)
		},
	}
	m.AddFlag(cmd)
	return cmd
}
