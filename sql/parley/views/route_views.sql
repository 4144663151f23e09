-- Routes under Service Broker's own names and columns (spec 8.1).

create view parley.routes with (security_barrier) as
select
  r.name,
  r.route_id,
  r.owner::oid as principal_id,
  r.remote_service_name,
  r.broker_instance,
  r.expires_at as lifetime,
  r.address,
  r.mirror_address,
  r.is_inbound,
  r.expires_at is not null and r.expires_at <= pg_catalog.clock_timestamp() as is_expired
from parley._p_route as r
where pg_catalog.pg_has_role(r.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'route')
  or r.route_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'route');

comment on view parley.routes is 'Routes, those for what arrives from the network too. The last two columns are ours.';
comment on column parley.routes.name is 'Its name.';
comment on column parley.routes.route_id is 'Identity of the route.';
comment on column parley.routes.principal_id is 'Oid of the owner.';
comment on column parley.routes.remote_service_name is 'Service that it leads to, compared byte by byte; null for any.';
comment on column parley.routes.broker_instance is 'Broker instance that it leads to; null for any.';
comment on column parley.routes.lifetime is 'When it expires; null for never.';
comment on column parley.routes.address is 'LOCAL, TRANSPORT, or tcp://host:port.';
comment on column parley.routes.mirror_address is 'Address of the second server of the target database, or null.';
comment on column parley.routes.is_inbound is
'Whether it is for what arrives from the network; others are for conversations of this database.';
comment on column parley.routes.is_expired is
'Whether it is not found any more; alter_route with a lifetime revives it.';
