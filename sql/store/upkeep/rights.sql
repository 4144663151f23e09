-- The store belongs to its owner alone, whatever default privileges say. A system that has a schema of its own says
-- there who may do what.

do $$
begin
  perform parley_store.take_back_schema('parley_store');
end
$$;
