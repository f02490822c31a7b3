-- Form 4: a search can go on behind its oldest hit, and retention removes what ended before, texts and words.
-- Run after schema-3.sql, or alone by: resume-hooks team init SERVICE --upgrade
do $$ begin
  if (select version from team.about) <> 3 then raise exception 'this makes form 4 of form 3' using errcode='22023'; end if;
end $$;
grant rh_owner to current_user;
set role rh_owner;
set search_path = pg_catalog, team, pg_temp;
update team.about set version = 4;

-- As before, and only what was said before p_until. Form 3 goes on asking without it.
drop function team.find(tsquery, timestamptz, int, boolean, text);
create function team.find(p_query tsquery, p_since timestamptz, p_most int, p_mine boolean, p_project text,
                          p_until timestamptz default 'infinity')
returns table(session bigint, part bigint, record int, at timestamptz, rank real)
language plpgsql stable security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := required(); scopes int[] := my_scopes(); parts bigint[]; most int := least(greatest(p_most, 1), 100);
        v_from timestamptz := least(p_until, now()); hi timestamptz := p_until; lo timestamptz; days int := 15;
        got int := 0; k int;
begin
  if p_mine then scopes := array(select s.scope from session s where s.owner = v_me group by 1); end if;
  select coalesce(array_agg(p.id), '{}') into parts from grant_ g
    join session s on s.session_id = g.session_id and s.owner = g.owner and s.live join part p on p.session = s.id
    where g.member = v_me and (g.until is null or g.until > now()) and not p_mine;
  loop                              -- the newest first, in growing windows: common words end early, rare ones cost little
    lo := greatest(p_since, case when days > 2000 then '-infinity' else v_from - days * interval '1 day' end);
    return query select s.id, x.part, x.record, x.at, ts_rank_cd(x.tsv, p_query) from (
        select w.part, w.record, w.at, w.tsv from passage w
        where w.at >= lo and w.at < hi and w.tsv @@ p_query and (w.scope = any(scopes) or w.part = any(parts))
          and (not p_mine and p_project = '' or exists(select 1 from part p join session s on s.id = p.session
            where p.id = w.part and (not p_mine or s.owner = v_me) and (p_project = '' or s.project = p_project)))
        order by w.at desc limit most - got) x
      join part p on p.id = x.part join session s on s.id = p.session;
    get diagnostics k = row_count;
    got := got + k;
    exit when got >= most or lo <= p_since or lo = '-infinity';
    hi := lo; days := days * 4;
  end loop;
end $$;
revoke all on function team.find(tsquery, timestamptz, int, boolean, text, timestamptz) from public;
grant execute on function team.find(tsquery, timestamptz, int, boolean, text, timestamptz) to rh_member;

-- Sessions that ended more than so many days ago go whole, on every machine; where none says when, what was not pushed
-- since. No mark is left. Months that are empty then go, and those of the next two years are made.
create or replace function team.retain(p_days int) returns int
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_old timestamptz := now() - p_days * interval '1 day'; v_row record; v_ended timestamptz; v_name text;
        v_month date; v_empty boolean; n int := 0;
begin
  if p_days < 1 or not exists(select 1 from member where id = me() and admin) then
    raise exception 'for an admin' using errcode='42501';
  end if;
  for v_row in select id, ended, pushed from session loop
    begin
      v_ended := v_row.ended::timestamptz;
    exception when others then
      v_ended := v_row.pushed;
    end;
    if v_ended < v_old then
      delete from session where id = v_row.id;
      n := n + 1;
    end if;
  end loop;
  for v_name in select relname from pg_class where relnamespace = 'team'::regnamespace and relkind = 'r'
      and relname ~ '^passage_\d{6}$' and relname < 'passage_' || to_char(v_old, 'YYYYMM') loop
    execute format('select not exists(select 1 from team.%I)', v_name) into v_empty;
    if v_empty then execute format('drop table team.%I', v_name); end if;
  end loop;
  for v_month in select generate_series(date_trunc('month', now()), now() + interval '24 months', interval '1 month') loop
    v_name := 'passage_' || to_char(v_month, 'YYYYMM');
    if to_regclass('team.' || v_name) is null and not exists(
        select 1 from passage_other where at >= v_month and at < v_month + interval '1 month') then
      execute format('create table team.%I partition of team.passage for values from (%L) to (%L)',
        v_name, v_month, v_month + interval '1 month');
    end if;
  end loop;
  insert into audit(act, detail) values('retain', jsonb_build_object('days', p_days, 'sessions', n));
  return n;
end $$;
reset role;
do $$ begin execute format('revoke rh_owner from %I', current_user); end $$;
