-- Checks of certificates: our own, those of peers, and the roles that peers act as.

create function parley._p_find_certificate_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case when c.not_after <= clock_timestamp() then 'certificate-expired' else 'certificate-expiring' end,
    'daemon', c.daemon,
    case
      when c.not_after <= clock_timestamp()
        then format('Its certificate has expired at %s: no link to another broker can be opened.', c.not_after)
      else format('Its certificate expires at %s.', c.not_after)
    end,
    case when c.not_after <= clock_timestamp() then c.not_after end,
    'parley certificate rotate'
  from parley.broker_certificates as c
  where c.not_after < clock_timestamp() + interval '30 days'
  union all
  select
    case when p.not_after <= clock_timestamp() then 'peer-expired' else 'peer-expiring' end,
    'peer', p.name,
    case
      when p.not_after <= clock_timestamp()
        then format('Its last key has expired at %s: there are no links with it.', p.not_after)
      else format(
        'Its last key expires at %s. It takes a new one when its operator says parley certificate rotate.', p.not_after
      )
    end,
    case when p.not_after <= clock_timestamp() then p.not_after end,
    format(
      'select parley.alter_peer(%L, add_fingerprint => ''<fingerprint>''); -- %s', p.name,
      case
        when p.not_after <= clock_timestamp() then 'or parley pair; see parley certificate list there'
        else 'not needed once the peer has rotated and called'
      end
    )
  from parley.peers as p
  where p.not_after < clock_timestamp() + interval '30 days' and p.state in ('TRUSTED', 'EXPIRED')
  union all
  select
    'peer-role-missing', 'peer', p.name,
    'The role that it acts as was dropped: only what is granted to PUBLIC counts for what it sends.', null,
    format('select parley.alter_peer(%L, role => ''<role>''); -- PUBLIC for none', p.name)
  from parley._p_peer as p
  where p.role is not null and p.revoked_at is null and not exists (select from pg_roles as r where r.oid = p.role)
$$;

comment on function parley._p_find_certificate_faults(parley._p_scope) is
'Finds certificates of daemons and keys of peers that have expired or expire within 30 days, and peers whose role is
gone.';
