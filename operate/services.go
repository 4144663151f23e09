package operate

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// ServiceStatus is a service; as JSON it is a stable format.
type ServiceStatus struct {
	Service   string   `json:"service"`
	ServiceID int32    `json:"service_id"`
	IsSystem  bool     `json:"is_system"` // the broker's own
	Queue     string   `json:"queue"`     // name as the statements take it
	Contracts []string `json:"contracts"` // accepted as target, by name
	// DeduplicationSeconds is for how long a deduplication key that is used as the service counts.
	DeduplicationSeconds int32 `json:"deduplication_seconds"`
}

// ReadServices reads the services, the broker's own last.
func ReadServices(ctx context.Context, db parley.DB) ([]ServiceStatus, error) {
	rows, err := db.Query(ctx, `
		select s.name, s.service_id, s.service_id < 65536,
			case q.schema_name when 'dbo' then q.name else q.schema_name || '.' || q.name end,
			array(
				select c.name
				from parley.service_contract_usages as u
				join parley.service_contracts as c using (service_contract_id)
				where u.service_id = s.service_id
				order by c.name
			),
			s.deduplication_seconds
		from parley.services as s
		join parley.service_queues as q on q.object_id = s.service_queue_id
		order by s.service_id < 65536, s.name`)
	if err != nil {
		return nil, fmt.Errorf("read the services: %w", err)
	}
	services, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ServiceStatus])
	if err != nil {
		return nil, fmt.Errorf("read the services: %w", err)
	}
	return services, nil
}
