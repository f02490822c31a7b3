
-- Form 2: which forms may still write here, and sessions that expire where they were pushed from.
-- Run after schema.sql, or alone by: resume-hooks team init SERVICE --upgrade
do $$ begin
  if (select version from team.about) <> 1 then raise exception 'this makes form 2 of form 1' using errcode='22023'; end if;
end $$;
grant rh_owner to current_user;
set role rh_owner;
set search_path = team, pg_catalog;

alter table about add column least int not null default 1;   -- the oldest form whose resume-hooks may go on
update about set version = 2;

-- Of one's own sessions those that a machine pushed and has no more: they go once they are so many days old, by the
-- server's clock. No mark is left: what comes back may be pushed again.
create function expire(p_sessions text[], p_machine uuid, p_days int) returns setof text
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_row record; v_ended timestamptz; v_gone text[] := '{}';
begin
  for v_row in select distinct on (s.session_id) s.session_id, s.ended, s.pushed, s.machine from session s
      join machine a on a.id = s.machine where s.owner = required() and a.uuid = p_machine
      and s.session_id = any(p_sessions) order by s.session_id, s.live desc loop
    begin
      v_ended := v_row.ended::timestamptz;
    exception when others then
      v_ended := v_row.pushed;
    end;
    if v_ended <= now() - p_days * interval '1 day' then
      delete from session where session_id = v_row.session_id and machine = v_row.machine;
      v_gone := v_gone || v_row.session_id;
    end if;
  end loop;
  if cardinality(v_gone) > 0 then
    insert into audit(act, detail) values('expire', jsonb_build_object('days', p_days, 'sessions', cardinality(v_gone)));
  end if;
  return query select unnest(v_gone);
end $$;
revoke all on function expire(text[], uuid, int) from public;
grant execute on function expire(text[], uuid, int) to rh_member;
reset role;
do $$ begin execute format('revoke rh_owner from %I', current_user); end $$;
