-- Templates: {{name}} in subject, text and HTML stands for a variable of the recipient.
--
-- A text is read once, from left to right, so what a value holds is never taken for a template. Values are escaped in
-- HTML; in a subject a control character refuses the message, as in any header.

create function parley_mail._p_filled(template text, variables jsonb, is_html boolean) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[];
  v_filled text;
  v_name text;
  v_value text;
  v_end integer;
begin
  if strpos(template, '{{') = 0 or template is null then
    return template;
  end if;
  v_parts := string_to_array(template, '{{');
  v_filled := v_parts[1];
  for i in 2..cardinality(v_parts) loop
    v_end := strpos(v_parts[i], '}}');
    v_name := btrim(left(v_parts[i], v_end - 1));
    if v_end = 0 or v_name !~ '^[A-Za-z_][A-Za-z0-9_.-]*$' then
      v_filled := v_filled || '{{' || v_parts[i];
      continue;
    end if;
    v_value := variables ->> v_name;
    if v_value is null then
      found := parley_mail._p_raise('variable', v_name, coalesce((
        select string_agg(k.name, ', ' order by k.name) from jsonb_object_keys(variables) as k (name)
      ), 'none'));
    end if;
    if is_html then
      v_value := replace(replace(replace(v_value, '&', '&amp;'), '<', '&lt;'), '>', '&gt;');
      v_value := replace(replace(v_value, '"', '&quot;'), '''', '&#39;');
    end if;
    v_filled := v_filled || v_value || substr(v_parts[i], v_end + 2);
  end loop;
  return v_filled;
end
$$;

comment on function parley_mail._p_filled(text, jsonb, boolean) is
'Gives a template with the values of variables in the place of their names.
Arguments: template, null gives null; variables, an object; is_html, whether values are escaped.
Errors: PM010 a variable that there is not.';

create function parley_mail._p_variables_of(variables jsonb, recipients integer) returns jsonb[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(variables) = 'object' then
    return array[variables];
  elsif jsonb_typeof(variables) <> 'array' then
    found := parley_mail._p_raise('variables', format('They are %s.', jsonb_typeof(variables)));
  elsif jsonb_array_length(variables) <> recipients then
    found := parley_mail._p_raise(
      'variables', format('There are %s of them for %s recipients.', jsonb_array_length(variables), recipients)
    );
  elsif exists (select from jsonb_array_elements(variables) as e (v) where jsonb_typeof(e.v) <> 'object') then
    found := parley_mail._p_raise('variables', 'One of them is no object.');
  end if;
  return array(select e.v from jsonb_array_elements(variables) with ordinality as e (v, n) order by e.n);
end
$$;

comment on function parley_mail._p_variables_of(jsonb, integer) is
'Gives the variables of each recipient, or one object for all of them.
Errors: PM010.';
