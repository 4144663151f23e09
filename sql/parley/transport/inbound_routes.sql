-- Inbound routes: what becomes of what arrives from the network (spec 6.1; SQL Server keeps them in msdb).
--
-- The table of a server is made of the inbound routes of all databases that one daemon serves; usually they stand in
-- one of them. Where none matches, LOCAL applies: the databases of the daemon are searched. A message whose broker
-- instance lives here needs no route.
-- The daemon decides in memory (FindInboundRoute of the Go package), for a link must not wait for a query for each
-- conversation. Its result is defined here, and a test holds it to that. Dynamic routing is for conversations of this
-- database only, so step 4 does not exist here.

create function parley._p_find_inbound_route(
  to_service text, to_broker_instance text, conversation_id uuid, out address text, out otherwise text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_route record := parley._p_best_route(to_service, to_broker_instance, conversation_id, true, false, null);
begin
  address := case when v_route.step is null then 'LOCAL' else parley._p_address_of(v_route.next_hop, to_service) end;
  if address = 'LOCAL' and v_route.step is not null then
    otherwise := parley._p_address_of(
      (
        parley._p_best_route(
          to_service, coalesce(to_broker_instance, v_route.broker_instance), conversation_id, true, false,
          case v_route.step when 3 then 1 else v_route.step end
        )
      ).next_hop,
      to_service
    );
  end if;
end
$$;

comment on function parley._p_find_inbound_route(text, text, uuid) is
'Finds where a message that has arrived from the network goes, by the inbound routes of this database.
Arguments: to_service; to_broker_instance in canonical form, null as long as it may be any; conversation_id.
Gives address: LOCAL, also when no route matches, or tcp://host:port with ,host:port of a mirror behind it, or null when
the service name has not the address that its only route, TRANSPORT, requires. otherwise: where it goes when address is
LOCAL and no database here has the service; null: it is dropped.
Source: spec 6.1 to 6.3.';
