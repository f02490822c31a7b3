-- Form 5: nobody's rows or locks stand before an owner's; what was scrubbed, or is older than what is kept, stays away.
-- Run after schema-4.sql, or alone by: resume-hooks team init SERVICE --upgrade
do $$ begin
  if (select version from team.about) <> 4 then raise exception 'this makes form 5 of form 4' using errcode='22023'; end if;
end $$;
grant rh_owner to current_user;
set role rh_owner;
set search_path = pg_catalog, team, pg_temp;
update team.about set version = 5;

-- How many days retention keeps, since it ran: what ended before is not taken again.
alter table team.about add column days int;

-- Each name and role once, checked at the end of a statement, so that one may bind all members anew after a restore.
-- No unique keys: to change one waits for whoever only names the member, and so for a transaction that nobody ends.
alter table team.member drop constraint member_role_key,
  add constraint member_role_key exclude using btree (role with =) deferrable;
alter table team.member drop constraint member_login_key,
  add constraint member_login_key exclude using btree (login with =) deferrable;
-- The role that was a member's until he was retired: it does not come back by itself.
alter table team.member add column retired oid;
-- Whether a session was a member's who left: its new owner did not say it.
alter table team.session add column given boolean not null default false;
-- Machines that may still have what was scrubbed on another of their owner's.
create table team.unscrubbed(
  session_id text not null, machine int not null references team.machine, primary key(session_id, machine));

-- No push changes an indexed column but where a session begins or goes.
drop index team.session_live;
create unique index session_live on team.session(session_id, machine, owner) where live;
create index session_base on team.session(base) where base is not null;      -- looked up for each row that is deleted
drop index team.session_listed;
create index session_listed on team.session(scope) where live;

-- One of a member's calls at a time, by a row that nobody else can lock, and whose lock keeps nobody from the member.
create table team.mutex(member int primary key references team.member on delete cascade);
create function team.lock_own(p_member int) returns void
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
begin
  insert into mutex values(p_member) on conflict do nothing;
  perform 1 from mutex where member = p_member for update;
end $$;
revoke all on function team.lock_own(int) from public;

-- Whoever may delete from a table, or change all of it, may lock it against everybody.
revoke update, delete on team.sdk_part, team.sdk_chunk, team.sdk_seen from rh_member;
grant update(entries, summary, mtime) on team.sdk_part to rh_member;
create function team.sdk_delete(p_project text, p_session text, p_subpath text) returns void
language sql security definer set search_path=pg_catalog,team,pg_temp as $$
  delete from sdk_part where owner = required() and project_key = p_project and session_id = p_session
    and (p_subpath is null or subpath = p_subpath) $$;
revoke all on function team.sdk_delete(text, text, text) from public;
grant execute on function team.sdk_delete(text, text, text) to rh_member;

-- What is shared with the caller alone, asked once a statement.
create function team.my_granted() returns bigint[]
language sql stable security definer set search_path=pg_catalog,team,pg_temp as $$
  select coalesce(array_agg(s.id), '{}') from grant_ g
    join session s on s.session_id = g.session_id and s.owner = g.owner and s.live
    where g.member = me() and (g.until is null or g.until > now()) $$;
revoke all on function team.my_granted() from public;
grant execute on function team.my_granted() to rh_member;

-- As before, of the rows that are asked about alone, and what the caller may read is looked up once.
create or replace function team.gone(p_ids bigint[]) returns setof bigint
language sql stable security definer set search_path=pg_catalog,team,pg_temp as $$
  select unnest(p_ids) where required() is not null except
  select id from session where id = any(p_ids) and live
    and (scope = any((select my_scopes())::int[]) or id = any((select my_granted())::bigint[])) $$;
drop policy read on team.session;
create policy read on team.session for select to rh_member using (
  owner = (select team.me())
  or (live and (scope = any((select team.my_scopes())::int[]) or id = any((select team.my_granted())::bigint[]))));

create or replace function team.enter(p_machine uuid, p_label text) returns int
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := me(); v_role oid := to_regrole(quote_ident(session_user))::oid; v_machine int;
        v_label text := left(p_label, 100);
begin
  if exists(select 1 from member where retired = v_role) then
    raise exception 'your role was retired' using errcode='RH403';
  end if;
  if exists(select 1 from member where id is distinct from v_me and (login = session_user or role = v_role)) then
    raise exception 'your role is not the one that entered as %', session_user using errcode='RH403';
  end if;
  if v_me is null then
    insert into member(login, role, admin) values(session_user, v_role, not exists(select 1 from member))
      returning id into v_me;
  end if;
  if not exists(select 1 from scope where kind = 'm' and member = v_me) then  -- an insert that conflicts takes an id
    insert into scope(kind, member) values('m', v_me) on conflict do nothing;
  end if;
  if exists(select 1 from machine where member = v_me and label = v_label and uuid <> p_machine) then
    v_label := left(v_label, 90) || ' ' || left(p_machine::text, 4);      -- two of one person's called "vm"
  end if;
  update machine set label = v_label where member = v_me and uuid = p_machine returning id into v_machine;
  if v_machine is null then
    insert into machine(member, uuid, label) values(v_me, p_machine, v_label)
      on conflict(member, uuid) do update set label = excluded.label returning id into v_machine;
  end if;
  insert into audit(act) values('enter');
  return v_machine;
end $$;

-- As before: whose it is, '' for the caller's own. Who is in it was admitted, and asks project_reach. What is there takes
-- no id.
create or replace function team.project_add(p_key text) returns name
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := required(); v_project int; v_owner int;
begin
  if length(p_key) not between 1 and 500 then raise exception 'bad key' using errcode='22023'; end if;
  select id, owner into v_project, v_owner from project where key = p_key;
  if v_project is null then
    insert into project(key, owner) values(p_key, v_me) on conflict do nothing;
    select id, owner into v_project, v_owner from project where key = p_key;
  end if;
  if v_owner <> v_me then return (select login from member where id = v_owner); end if;
  insert into project_member values(v_project, v_me) on conflict do nothing;
  if not exists(select 1 from scope where kind = 'p' and project = v_project) then
    insert into scope(kind, project) values('p', v_project) on conflict do nothing;
  end if;
  return '';
end $$;

-- Of a project that the caller is in: whose it is, and how many members beside the caller read what is shared with it.
create function team.project_reach(p_key text) returns table(login name, others bigint)
language sql stable security definer set search_path=pg_catalog,team,pg_temp as $$
  select m.login, (select count(*) from project_member x join member o on o.id = x.member
      where x.project = p.id and o.role is not null and o.id <> me())
    from project p join member m on m.id = p.owner
    where p.key = p_key and exists(select 1 from project_member x where x.project = p.id and x.member = me()) $$;
revoke all on function team.project_reach(text) from public;
grant execute on function team.project_reach(text) to rh_member;

-- Of sessions those whose rows nobody's transaction holds, nor those of any that went on from them: locked, to be deleted
-- without waiting.
create function team.free_of(p_sessions bigint[]) returns bigint[]
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_held bigint[] := array(
  select id from session where id = any(p_sessions) or base = any(p_sessions) for update skip locked);
begin
  return array(select s.id from session s where s.id = any(p_sessions) and s.id = any(v_held)
    and not exists(select 1 from session d where d.base = s.id and d.id <> all(v_held)));
end $$;
revoke all on function team.free_of(bigint[]) from public;

-- What a member may read by the word of others ends. What somebody's transaction holds is left: nobody is him any more.
create function team.end_rights(p_member int) returns void
language sql security definer set search_path=pg_catalog,team,pg_temp as $$
  delete from project_member where ctid = any(array(
    select ctid from project_member where member = p_member for update skip locked));
  delete from grant_ where ctid = any(array(
    select ctid from grant_ where member = p_member for update skip locked)) $$;
revoke all on function team.end_rights(int) from public;

-- As before. 'keep' binds a member to his own role, which bears another name now, or to the one that took the place of
-- his under the same name: never to a role beside his. 'keep' of one who was retired lets his own role be him again.
-- Who is retired is nobody from then on, whatever transactions are open: sessions that one of them holds stay his, are
-- counted in the audit ('held'), and go when it is asked for again, of the name that he has then ('as').
create or replace function team.settle_member(p_login name, p_act text, p_to name) returns int
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_member int; v_to int; v_name name; v_role oid; v_own oid; v_private int[]; v_theirs text[]; v_free bigint[]; n int := 0;
        v_left int := 0;
begin
  if not exists(select 1 from member where id = me() and admin) then
    raise exception 'for an admin' using errcode='42501';
  end if;
  select id, coalesce(role, retired) into v_member, v_own from member where login = p_login for no key update;
  select id into v_to from member where login = p_to and role is not null;
  if v_member is null or (p_act = 'give' and v_to is null) then
    raise exception 'no such member' using errcode='RH404';
  end if;
  if p_act = 'keep' then
    v_name := coalesce(nullif(p_to, ''), p_login);
    v_role := to_regrole(quote_ident(v_name))::oid;
    if v_role is null then raise exception 'no such role' using errcode='RH404'; end if;
    if v_role is distinct from v_own and v_name <> p_login then
      raise exception '% is another role than that of %, whose private sessions it must not read', v_name, p_login
        using errcode='42501';
    end if;
    if exists(select 1 from member where id = v_member and role is null) then perform end_rights(v_member); end if;
    update member set login = v_name, role = v_role, retired = null where id = v_member;
  elsif p_act not in ('retire', 'give', 'remove') then
    raise exception 'no such act' using errcode='22023';
  elsif v_member = me() then
    raise exception 'another admin can do that' using errcode='42501';
  else
    update member set retired = v_own, role = null, admin = false, login = case when role is null then login
      else left(login::text, 40) || ' (left, ' || id || ')' end where id = v_member returning login into v_name;
    perform end_rights(v_member);
    if p_act = 'give' then
      v_private := array(select id from scope where kind = 'm');
      v_theirs := array(select session_id from session where owner = v_to);
      update session set owner = v_to, given = true where id = any(array(
        select id from session where owner = v_member and scope <> all(v_private) for no key update skip locked));
      get diagnostics n = row_count;
      update grant_ set owner = v_to where ctid = any(array(select ctid from grant_
        where owner = v_member and member <> v_to and session_id <> all(v_theirs)
          and session_id in (select session_id from session where owner = v_to) for update skip locked));
      delete from grant_ where ctid = any(array(select ctid from grant_ where owner = v_member and session_id not in (
        select session_id from session where owner = v_member and scope <> all(v_private)) for update skip locked));
      update project set owner = v_to where owner = v_member;
      select count(*) into v_left from session where owner = v_member and scope <> all(v_private);
    elsif p_act = 'remove' then
      delete from grant_ where ctid = any(array(select ctid from grant_ where owner = v_member for update skip locked));
      v_free := free_of(array(select id from session where owner = v_member));
      delete from session where id = any(v_free);
      get diagnostics n = row_count;
      delete from sdk_part where id = any(array(select id from sdk_part where owner = v_member for update skip locked));
      select count(*) into v_left from session where owner = v_member;
    end if;
  end if;
  insert into audit(act, detail) values(p_act, jsonb_build_object(
    'member', p_login, 'to', p_to, 'sessions', n, 'held', v_left, 'as', v_name));
  return n;
end $$;

-- An instant that a client wrote; the other one where it is none.
create function team.instant(p_text text, p_else timestamptz) returns timestamptz
language plpgsql stable security definer set search_path=pg_catalog,team,pg_temp as $$
begin
  return p_text::timestamptz;
exception when others then
  return p_else;
end $$;
revoke all on function team.instant(text, timestamptz) from public;

-- The months that words are kept by, two years ahead; the words of others lie together. While somebody's search has not
-- ended none is made, nor waited for long: the next session that an admin begins, or retention, makes it.
create function team.make_months() returns void
language plpgsql security definer set search_path=pg_catalog,team,pg_temp set lock_timeout='500ms' as $$
declare v_month date; v_name text;
begin
  for v_month in select generate_series(date_trunc('month', now()), now() + interval '24 months', interval '1 month') loop
    v_name := 'passage_' || to_char(v_month, 'YYYYMM');
    if to_regclass('team.' || v_name) is null and not exists(
        select 1 from passage_other where at >= v_month and at < v_month + interval '1 month') then
      execute format('create table team.%I partition of team.passage for values from (%L) to (%L)',
        v_name, v_month, v_month + interval '1 month');
    end if;
  end loop;
exception when lock_not_available then
  null;
end $$;
revoke all on function team.make_months() from public;

-- The machine tells that a session was scrubbed there. The first of one's machines takes what the others pushed of it,
-- or went on from it with, and these push it again once it was scrubbed there, too.
create function team.scrubbed(p_session text, p_machine uuid) returns void
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := required(); v_machine int;
begin
  perform lock_own(v_me);
  select id into v_machine from machine where member = v_me and uuid = p_machine;
  if v_machine is null then raise exception 'no such machine' using errcode='42501'; end if;
  delete from unscrubbed where session_id = p_session and machine = v_machine;
  if found then return; end if;
  with recursive same as (
    select id, session_id, machine from session where session_id = p_session and owner = v_me
    union select s.id, s.session_id, s.machine from session s join same on s.base = same.id where s.owner = v_me),
  went as (delete from session where machine <> v_machine
    and (session_id, machine) in (select session_id, machine from same))
  insert into unscrubbed select distinct session_id, machine from same where machine <> v_machine
    on conflict do nothing;
end $$;
revoke all on function team.scrubbed(text, uuid) from public;
grant execute on function team.scrubbed(text, uuid) to rh_member;

-- As before. The member's own row is the lock, which no other member can take.
create or replace function team.begin_session(p_session text, p_machine uuid, p_about jsonb, p_old bigint, p_drop boolean,
                                              p_base bigint) returns bigint
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := required(); v_machine int; v_live session%rowtype; v_scope int; v_id bigint; v_next int;
        v_part part%rowtype; v_copy bigint; v_days int;
begin
  if length(p_session) not between 1 and 200 or pg_column_size(p_about) > 20000 then
    raise exception 'too long' using errcode='22023';
  end if;
  if to_regclass('team.passage_' || to_char(now() + interval '1 month', 'YYYYMM')) is null
      and exists(select 1 from member where id = v_me and admin) then       -- it locks all words until the caller is done
    perform make_months();
  end if;
  perform lock_own(v_me);
  if exists(select 1 from forgotten where session_id = p_session and owner = v_me) then
    raise exception 'forgotten' using errcode='RH410';
  end if;
  select id into v_machine from machine where member = v_me and uuid = p_machine for update;
  if v_machine is null then raise exception 'no such machine' using errcode='42501'; end if;
  if exists(select 1 from unscrubbed where session_id = p_session and machine = v_machine) then
    raise exception 'scrubbed on another machine' using errcode='RH411';
  end if;
  select * into v_live from session where session_id = p_session and machine = v_machine and owner = v_me
    and live;
  if v_live.id is null then
    select days into v_days from about;
    if instant(p_about->>'ended', now()) < now() - v_days * interval '1 day' then
      raise exception 'older than what is kept' using errcode='RH412';
    end if;
  end if;
  if v_live.id is null or v_live.id = p_old then
    select coalesce(max(generation) + 1, 0) into v_next from session where session_id = p_session and machine = v_machine;
    v_scope := coalesce(
      (select scope from session where session_id = p_session and owner = v_me and live and not given
        order by pushed desc limit 1),
      (select id from scope where kind = 'm' and member = v_me));
    if v_live.id is not null then
      delete from passage where part in (select id from part where session = v_live.id);
      update session set live = false where id = v_live.id;
      if p_drop then
        delete from session where session_id = p_session and machine = v_machine and owner = v_me;
      end if;
    end if;
    insert into session(session_id, machine, generation, owner, scope, base)
      values(p_session, v_machine, v_next, v_me, v_scope, (select id from session where id = p_base and owner = v_me))
      returning id into v_id;
    for v_part in select p.* from part p join session s on s.id = p.session where s.id = p_base and s.owner = v_me loop
      insert into part(session, name, records, raw, head) values(v_id, v_part.name, v_part.records, v_part.raw, v_part.head)
        returning id into v_copy;
      insert into chunk select v_copy, first, records, raw, sha, head, data, rules, secrets, at from chunk where part = v_part.id;
      insert into passage select v_copy, record, v_scope, at, tsv from passage where part = v_part.id;
    end loop;
  else
    v_id := v_live.id;
  end if;
  update session s set title = coalesce(p_about->>'title', s.title), folder = coalesce(p_about->>'folder', s.folder),
    project = coalesce(p_about->>'project', s.project), created = coalesce(p_about->>'created', s.created),
    ended = coalesce(p_about->>'ended', s.ended), parent = coalesce(p_about->>'parent', s.parent),
    kind = coalesce(p_about->>'kind', s.kind), pushed = now() where s.id = v_id;
  return v_id;
end $$;

-- As before, with whose each turn is, and without those of some: nobody's fill the pages of a search.
drop function team.find(tsquery, timestamptz, int, boolean, text, timestamptz);
create function team.find(p_query tsquery, p_since timestamptz, p_most int, p_mine boolean, p_project text,
                          p_until timestamptz default 'infinity', p_without name[] default '{}')
returns table(session bigint, part bigint, record int, at timestamptz, rank real, said_by name, mine boolean)
language plpgsql stable security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := required(); scopes int[] := my_scopes(); parts bigint[]; most int := least(greatest(p_most, 1), 100);
        v_from timestamptz := least(p_until, now()); hi timestamptz := p_until; lo timestamptz; days int := 15;
        got int := 0; k int; v_without int[] := array(select m.id from member m where m.login = any(p_without));
begin
  if p_mine then scopes := array(select s.scope from session s where s.owner = v_me group by 1); end if;
  select coalesce(array_agg(p.id), '{}') into parts from grant_ g
    join session s on s.session_id = g.session_id and s.owner = g.owner and s.live join part p on p.session = s.id
    where g.member = v_me and (g.until is null or g.until > now()) and not p_mine;
  loop
    lo := greatest(p_since, case when days > 2000 then '-infinity' else v_from - days * interval '1 day' end);
    return query select s.id, x.part, x.record, x.at, ts_rank_cd(x.tsv, p_query), m.login, s.owner = v_me from (
        select w.part, w.record, w.at, w.tsv from passage w
        where w.at >= lo and w.at < hi and w.tsv @@ p_query and (w.scope = any(scopes) or w.part = any(parts))
          and (not p_mine and p_project = '' and v_without = '{}' or exists(
            select 1 from part p join session s on s.id = p.session where p.id = w.part
              and (not p_mine or s.owner = v_me) and (p_project = '' or s.project = p_project)
              and s.owner <> all(v_without)))
        order by w.at desc limit most - got) x
      join part p on p.id = x.part join session s on s.id = p.session join member m on m.id = s.owner;
    get diagnostics k = row_count;
    got := got + k;
    exit when got >= most or lo <= p_since or lo = '-infinity';
    hi := lo; days := days * 4;
  end loop;
end $$;
revoke all on function team.find(tsquery, timestamptz, int, boolean, text, timestamptz, name[]) from public;
grant execute on function team.find(tsquery, timestamptz, int, boolean, text, timestamptz, name[]) to rh_member;

-- As before, under the lock under which a session begins: no generation comes with the rights of a moment ago.
create or replace function team.share(p_session text, p_kind "char", p_whom text, p_until timestamptz) returns int
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := required(); v_scope int; v_member int; n int;
begin
  perform lock_own(v_me);
  select count(*) into n from session where session_id = p_session and owner = v_me;
  if n = 0 then raise exception 'not yours' using errcode='RH404'; end if;
  if p_kind = 'g' then
    p_whom := p_whom::name;
    select id into v_member from member where login = p_whom::name;
    if v_member is null then raise exception 'no such member' using errcode='RH404'; end if;
    insert into grant_ values(p_session, v_me, v_member, p_until)
      on conflict(session_id, owner, member) do update set until = excluded.until;
  else
    if p_kind <> 'p' then p_whom := ''; end if;                  -- what the audit has is no one's words
    if p_kind = 'm' then delete from grant_ where session_id = p_session and owner = v_me; end if;
    select s.id into v_scope from scope s left join project p on p.id = s.project
      where s.id = any(my_scopes()) and s.kind = p_kind and (p_kind <> 'p' or p.key = p_whom)
        and (p_kind <> 'm' or s.member = v_me);
    if v_scope is null then raise exception 'not in that project' using errcode='42501'; end if;
    update session set scope = v_scope where session_id = p_session and owner = v_me;
    update passage set scope = v_scope where part in (
      select p.id from part p join session s on s.id = p.session where s.session_id = p_session and s.owner = v_me);
  end if;
  insert into audit(act, session_id, detail) values('share', p_session,
    jsonb_build_object('kind', p_kind, 'whom', p_whom, 'until', p_until));
  return n;
end $$;

create or replace function team.forget(p_session text) returns int
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := required(); n int;
begin
  perform lock_own(v_me);
  delete from session where session_id = p_session and owner = v_me;
  get diagnostics n = row_count;
  delete from grant_ where session_id = p_session and owner = v_me;
  delete from unscrubbed where session_id = p_session and machine in (select id from machine where member = v_me);
  insert into forgotten values(p_session, v_me) on conflict do nothing;
  insert into audit(act, session_id, detail) values('forget', p_session, jsonb_build_object('copies', n));
  return n;
end $$;

-- As before; what Agent SDK programs keep goes, too, once it is as old, and nothing that is older comes back. No row is
-- waited for, since others would wait behind it: what somebody's transaction holds goes the next time.
create or replace function team.retain(p_days int) returns int
language plpgsql security definer set search_path=pg_catalog,team,pg_temp set lock_timeout='500ms' as $$
declare v_old timestamptz := now() - p_days * interval '1 day'; v_name text; v_empty boolean; v_free bigint[];
        n int := 0;
begin
  if p_days < 1 or not exists(select 1 from member where id = me() and admin) then
    raise exception 'for an admin' using errcode='42501';
  end if;
  update about set days = p_days;
  v_free := free_of(array(select id from session
    where case when isfinite(instant(ended, pushed)) then instant(ended, pushed) else pushed end < v_old));
  delete from session where id = any(v_free);
  get diagnostics n = row_count;
  delete from sdk_part where id = any(array(
    select id from sdk_part where mtime < extract(epoch from v_old) * 1000 for update skip locked));
  for v_name in select relname from pg_class where relnamespace = 'team'::regnamespace and relkind = 'r'
      and relname ~ '^passage_\d{6}$' and relname < 'passage_' || to_char(v_old, 'YYYYMM') loop
    execute format('select not exists(select 1 from team.%I)', v_name) into v_empty;
    if v_empty then
      begin
        execute format('drop table team.%I', v_name);
      exception when lock_not_available then
        exit;                                                  -- somebody searches; it is empty, and goes next time
      end;
    end if;
  end loop;
  perform make_months();
  insert into audit(act, detail) values('retain', jsonb_build_object('days', p_days, 'sessions', n));
  return n;
end $$;
reset role;
do $$ begin execute format('revoke rh_owner from %I', current_user); end $$;
