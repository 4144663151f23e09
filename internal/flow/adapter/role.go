package adapter

import (
	"context"
	"fmt"
)

// AsRole gives a transaction the rights of the role of the host, until back is called or the transaction ends: what a definition names is
// done with the rights of its host, whatever the login of the node may do besides. Code that runs in the transaction can take the rights of
// the login back, as SET ROLE always lets it. So a node logs in as a role that may do no more than its hosts.
func (e Endpoint) AsRole(ctx context.Context, tx Transaction) (back func(ctx context.Context) error, err error) {
	if e.Role == "" {
		return func(context.Context) error { return nil }, nil
	}
	var before string
	err = tx.QueryRow(ctx, `
		with was as materialized (select pg_catalog.current_setting('role') as role)
		select was.role from was where pg_catalog.set_config('role', $1, true) is not null`, e.Role).Scan(&before)
	if err != nil {
		return nil, fmt.Errorf("work as role %q of the host, of which the login of the node is to be a member: %w", e.Role, err)
	}
	return func(ctx context.Context) error {
		if _, err := tx.Exec(ctx, "select pg_catalog.set_config('role', $1, true)", before); err != nil {
			return fmt.Errorf("give the transaction back its role: %w", err)
		}
		return nil
	}, nil
}
