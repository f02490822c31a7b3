-- PostgreSQL 15 or later, no extension. Run by whoever may create roles and owns, or may create in, the database.
-- rh_owner owns everything and can't log in; rh_member is what every member's own role is a member of.
do $$ begin create role rh_owner nologin; exception when duplicate_object then null; end $$;
do $$ begin create role rh_member nologin; exception when duplicate_object then null; end $$;
grant rh_owner to current_user;
create schema team authorization rh_owner;
set role rh_owner;
set search_path = team, pg_catalog;

create table about(version int not null, made timestamptz not null default now());
insert into about values(1);
create table member(
  id int generated always as identity primary key, login name not null unique, admin boolean not null default false,
  joined timestamptz not null default now());
create table machine(
  id int generated always as identity primary key, member int not null references member, uuid uuid not null,
  label text not null default '', unique(member, uuid));
create table project(
  id int generated always as identity primary key, key text not null unique, owner int not null references member);
create table project_member(
  project int references project on delete cascade, member int references member on delete cascade,
  primary key(project, member));
-- Who may read: one member, a project's members, everybody. Rows of grant_ add single members.
create table scope(
  id int generated always as identity primary key, kind "char" not null check(kind in ('m','p','t')),
  project int references project on delete cascade, member int references member on delete cascade,
  unique nulls not distinct(kind, project, member));
insert into scope(kind) values('t');
create table session(
  id bigint generated always as identity primary key,
  session_id text not null, machine int not null references machine, generation int not null,
  owner int not null references member, scope int not null references scope, live boolean not null default true,
  project text not null default '', title text not null default '', folder text not null default '',
  created text not null default '', ended text not null default '', parent text not null default '',
  kind text not null default '', base bigint references session on delete set null,
  pushed timestamptz not null default now(), unique(session_id, machine, generation));
create unique index session_live on session(session_id, machine) where live;
create index session_listed on session(scope, pushed desc) where live;
create index session_owned on session(owner, session_id);
create table part(                  -- '' for the transcript, 'subagents/agent-x.jsonl', 'tool-results/y.txt'
  id bigint generated always as identity primary key, session bigint not null references session on delete cascade,
  name text not null, records int not null default 0, raw bigint not null default 0, head bytea not null default '\x',
  unique(session, name));
create table chunk(
  part bigint not null references part on delete cascade, first int not null, records int not null, raw int not null,
  sha bytea not null, head bytea not null, data bytea not null, rules text not null, secrets jsonb not null,
  at timestamptz not null default now(), primary key(part, first));
alter table chunk alter data set storage external;
-- The words of one turn, no text. Positions are records (the turn's first is 1), weights who said them.
create table passage(
  part bigint not null references part on delete cascade, record int not null, scope int not null,
  at timestamptz not null, tsv tsvector not null) partition by range(at);
create table passage_other partition of passage default;
do $$ declare month date := date_trunc('month', now() - interval '24 months'); begin
  while month < now() + interval '24 months' loop
    execute format('create table %I partition of passage for values from (%L) to (%L)',
      'passage_' || to_char(month, 'YYYYMM'), month, month + interval '1 month');
    month := month + interval '1 month';
  end loop; end $$;
create index passage_words on passage using gin(tsv) with (fastupdate=off);
create index passage_newest on passage(scope, at desc);
create index passage_part on passage(part, record);
create table grant_(
  session_id text not null, owner int not null references member, member int not null references member,
  until timestamptz, primary key(session_id, owner, member));
create table forgotten(
  session_id text not null, owner int not null references member, at timestamptz not null default now(),
  primary key(session_id, owner));
create table audit(
  id bigint generated always as identity primary key, at timestamptz not null default now(),
  login name not null default session_user, act text not null, session_id text not null default '',
  detail jsonb not null default '{}');

-- What Agent SDK programs keep: each row its owner's alone, JSON text in pieces, never looked into here.
create table sdk_part(
  id bigint generated always as identity primary key, owner int not null references member, project_key text not null,
  session_id text not null, subpath text not null, entries bigint not null default 0, mtime bigint not null default 0,
  summary bytea, unique(owner, project_key, session_id, subpath));
create table sdk_chunk(
  part bigint not null references sdk_part on delete cascade, first bigint not null, data bytea not null,
  primary key(part, first));
alter table sdk_chunk alter data set storage external;
create table sdk_seen(
  part bigint not null references sdk_part on delete cascade, uuid bytea not null, primary key(part, uuid));

-- Everything below runs as rh_owner; who asks is the role that logged in, which nobody can set.
create function me() returns int language sql stable security definer set search_path=pg_catalog,team,pg_temp as
$$ select id from member where login = session_user $$;

create function required() returns int language plpgsql stable security definer set search_path=pg_catalog,team,pg_temp as $$
declare found int := me();
begin
  if found is null then raise exception 'no member' using errcode='42501'; end if;
  return found;
end $$;

create function my_scopes() returns int[] language sql stable security definer set search_path=pg_catalog,team,pg_temp as $$
  select coalesce(array_agg(id), '{}') from scope where me() is not null
    and (kind = 't' or member = me() or project in (select project from project_member where member = me())) $$;

create function granted(p_session text, p_owner int) returns boolean
language sql stable security definer set search_path=pg_catalog,team,pg_temp as $$
  select exists(select 1 from grant_ where session_id = p_session and owner = p_owner and member = me()
    and (until is null or until > now())) $$;

create function enter(p_machine uuid, p_label text) returns int
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int; v_machine int;
begin
  insert into member(login, admin) values(session_user, not exists(select 1 from member)) on conflict do nothing;
  v_me := required();
  insert into scope(kind, member) values('m', v_me) on conflict do nothing;
  insert into machine(member, uuid, label) values(v_me, p_machine, left(p_label, 100))
    on conflict(member, uuid) do update set label = excluded.label returning id into v_machine;
  insert into audit(act) values('enter');
  return v_machine;
end $$;

create function project_add(p_key text) returns name
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := required(); v_project int; v_owner int;
begin
  if length(p_key) not between 1 and 500 then raise exception 'bad key' using errcode='22023'; end if;
  insert into project(key, owner) values(p_key, v_me) on conflict do nothing;
  select id, owner into v_project, v_owner from project where key = p_key;
  if v_owner = v_me then
    insert into project_member values(v_project, v_me) on conflict do nothing;
    insert into scope(kind, project) values('p', v_project) on conflict do nothing;
  end if;
  if exists(select 1 from project_member where project = v_project and member = v_me) then return ''; end if;
  return (select login from member where id = v_owner);       -- who can admit the caller
end $$;

create function project_admit(p_key text, p_login name, p_in boolean) returns void
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_project int; v_member int;
begin
  select id into v_project from project where key = p_key and owner = required();
  if v_project is null then raise exception 'not yours' using errcode='42501'; end if;
  select id into v_member from member where login = p_login;
  if v_member is null then raise exception 'no such member' using errcode='RH404'; end if;
  if p_in then insert into project_member values(v_project, v_member) on conflict do nothing;
  else delete from project_member where project = v_project and member = v_member; end if;
  insert into audit(act, detail) values('admit', jsonb_build_object('project', p_key, 'login', p_login, 'in', p_in));
end $$;

-- The live generation of a session on one's machine; made where there is none, or where p_old is the live one and is to
-- give way. p_drop: what gave way goes for good. p_base: begin with all that another of one's rows holds.
create function begin_session(p_session text, p_machine uuid, p_about jsonb, p_old bigint, p_drop boolean, p_base bigint)
returns bigint language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := required(); v_machine int; v_live session%rowtype; v_scope int; v_id bigint; v_next int;
        v_part part%rowtype; v_copy bigint;
begin
  if length(p_session) not between 1 and 200 or pg_column_size(p_about) > 20000 then
    raise exception 'too long' using errcode='22023';
  end if;
  perform pg_advisory_xact_lock(hashtextextended(p_session, v_me));
  if exists(select 1 from forgotten where session_id = p_session and owner = v_me) then
    raise exception 'forgotten' using errcode='RH410';
  end if;
  select id into v_machine from machine where member = v_me and uuid = p_machine for update;
  if v_machine is null then raise exception 'no such machine' using errcode='42501'; end if;
  select * into v_live from session where session_id = p_session and machine = v_machine and live;
  if v_live.id is null or v_live.id = p_old then
    select coalesce(max(generation) + 1, 0) into v_next from session where session_id = p_session and machine = v_machine;
    v_scope := coalesce(
      (select scope from session where session_id = p_session and owner = v_me and live order by pushed desc limit 1),
      (select id from scope where kind = 'm' and member = v_me));
    if v_live.id is not null then
      delete from passage where part in (select id from part where session = v_live.id);
      update session set live = false where id = v_live.id;
      if p_drop then delete from session where session_id = p_session and machine = v_machine; end if;
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

create function append(p_id bigint, p_part text, p_first int, p_head bytea, p_records int, p_raw int, p_sha bytea,
                       p_data bytea, p_rules text, p_secrets jsonb, p_turns int[], p_times timestamptz[],
                       p_words text[])
returns table(records int, head bytea, applied boolean)
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_session session%rowtype; v_part part%rowtype; v_new bytea;
begin
  select * into v_session from session where id = p_id and owner = required() and live for share;
  if v_session.id is null then raise exception 'not yours' using errcode='RH409'; end if;
  if octet_length(p_data) > 64*1024*1024 or octet_length(p_sha) <> 32 or p_records < 1 or length(p_part) > 300 then
    raise exception 'bad piece' using errcode='22023';
  end if;
  insert into part(session, name) values(p_id, p_part) on conflict do nothing;
  select * into v_part from part p where p.session = p_id and p.name = p_part for update;
  if v_part.records = p_first and v_part.head = p_head then
    v_new := sha256(v_part.head || p_sha);
    insert into chunk values(v_part.id, p_first, p_records, p_raw, p_sha, v_new, p_data, p_rules, p_secrets);
    insert into passage select v_part.id, w.record, v_session.scope, w.at, w.said::tsvector
      from unnest(p_turns, p_times, p_words) w(record, at, said);
    update part p set records = p_first + p_records, raw = p.raw + p_raw, head = v_new where p.id = v_part.id;
    return query select p_first + p_records, v_new, true;
  else                                        -- sent before, or not what the sender thinks: he looks at what there is
    return query select v_part.records, v_part.head, exists(
      select 1 from chunk c where c.part = v_part.id and c.first = p_first and c.sha = p_sha);
  end if;
end $$;

-- Never by row-level security: @@ is not leakproof, so a policy would have every search read every row.
create function find(p_query tsquery, p_since timestamptz, p_most int, p_mine boolean, p_project text)
returns table(session bigint, part bigint, record int, at timestamptz, rank real)
language plpgsql stable security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := required(); scopes int[] := my_scopes(); parts bigint[]; most int := least(greatest(p_most, 1), 100);
        hi timestamptz := 'infinity'; lo timestamptz; days int := 15; got int := 0; k int;
begin
  if p_mine then scopes := array(select s.scope from session s where s.owner = v_me group by 1); end if;
  select coalesce(array_agg(p.id), '{}') into parts from grant_ g
    join session s on s.session_id = g.session_id and s.owner = g.owner and s.live join part p on p.session = s.id
    where g.member = v_me and (g.until is null or g.until > now()) and not p_mine;
  loop                              -- the newest first, in growing windows: common words end early, rare ones cost little
    lo := greatest(p_since, case when days > 2000 then '-infinity' else now() - days * interval '1 day' end);
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

create function share(p_session text, p_kind "char", p_whom text, p_until timestamptz) returns int
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := required(); v_scope int; v_member int; n int;
begin
  select count(*) into n from session where session_id = p_session and owner = v_me;
  if n = 0 then raise exception 'not yours' using errcode='RH404'; end if;
  if p_kind = 'g' then
    select id into v_member from member where login = p_whom::name;
    if v_member is null then raise exception 'no such member' using errcode='RH404'; end if;
    insert into grant_ values(p_session, v_me, v_member, p_until)
      on conflict(session_id, owner, member) do update set until = excluded.until;
  else
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

create function forget(p_session text) returns int
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := required(); n int;
begin
  perform pg_advisory_xact_lock(hashtextextended(p_session, v_me));
  delete from session where session_id = p_session and owner = v_me;
  get diagnostics n = row_count;
  delete from grant_ where session_id = p_session and owner = v_me;
  insert into forgotten values(p_session, v_me) on conflict do nothing;
  insert into audit(act, session_id, detail) values('forget', p_session, jsonb_build_object('copies', n));
  return n;
end $$;

-- Of copies that somebody pulled: those that he may not have any more.
create function gone(p_ids bigint[]) returns setof bigint
language sql stable security definer set search_path=pg_catalog,team,pg_temp as $$
  select unnest(p_ids) where required() is not null except
  select id from session where live and (scope = any(my_scopes()) or granted(session_id, owner)) $$;

-- Words older than so many days are no longer found; sessions that nobody pushed for as long go whole.
create function retain(p_days int) returns int
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_old timestamptz := now() - p_days * interval '1 day'; v_name text; n int;
begin
  if p_days < 1 or not exists(select 1 from member where id = me() and admin) then
    raise exception 'for an admin' using errcode='42501';
  end if;
  for v_name in select relname from pg_class where relnamespace = 'team'::regnamespace and relkind = 'r'
      and relname ~ '^passage_\d{6}$' and relname < 'passage_' || to_char(v_old, 'YYYYMM') loop
    execute format('drop table %I', v_name);
  end loop;
  delete from session where pushed < v_old;
  get diagnostics n = row_count;
  insert into audit(act, detail) values('retain', jsonb_build_object('days', p_days, 'sessions', n));
  return n;
end $$;

alter table sdk_part alter owner set default required();
alter table sdk_part enable row level security;
alter table sdk_chunk enable row level security;
alter table sdk_seen enable row level security;
create policy own on sdk_part to rh_member using (owner = (select me()));
create policy own on sdk_chunk to rh_member using (exists(select 1 from sdk_part p where p.id = part));
create policy own on sdk_seen to rh_member using (exists(select 1 from sdk_part p where p.id = part));
grant select, insert, update, delete on sdk_part, sdk_chunk, sdk_seen to rh_member;
alter table session enable row level security;
alter table part enable row level security;
alter table chunk enable row level security;
alter table passage enable row level security;
alter table grant_ enable row level security;
alter table forgotten enable row level security;
alter table audit enable row level security;
alter table project enable row level security;
alter table project_member enable row level security;
create policy read on session for select to rh_member
  using (owner = (select me()) or (live and (scope = any((select my_scopes())::int[]) or granted(session_id, owner))));
create policy read on part for select to rh_member using (exists(select 1 from session s where s.id = session));
create policy read on chunk for select to rh_member using (exists(select 1 from part p where p.id = part));
create policy read on grant_ for select to rh_member using (member = (select me()) or owner = (select me()));
create policy read on forgotten for select to rh_member using (owner = (select me()));
create policy read on audit for select to rh_member
  using (login = session_user or exists(select 1 from member where id = (select me()) and admin));
create policy read on project for select to rh_member
  using (exists(select 1 from project_member p where p.project = id));
create policy read on project_member for select to rh_member using (member = (select me()));
revoke all on all functions in schema team from public;
grant usage on schema team to rh_member;
grant select on about, member, session, part, chunk, grant_, forgotten, audit, project, project_member, scope to rh_member;
grant select(id, member, label) on machine to rh_member;
grant execute on function me(), required(), my_scopes(), granted(text, int), enter(uuid, text), project_add(text),
  project_admit(text, name, boolean), begin_session(text, uuid, jsonb, bigint, boolean, bigint),
  append(bigint, text, int, bytea, int, int, bytea, bytea, text, jsonb, int[], timestamptz[], text[]),
  find(tsquery, timestamptz, int, boolean, text), share(text, "char", text, timestamptz), forget(text), gone(bigint[]),
  retain(int) to rh_member;
reset role;
grant rh_member to current_user;
do $$ begin execute format('revoke rh_owner from %I', current_user); end $$;
