-- Form 3: no function looks into a member's temporary schema first, and a member is a role, not the name of one.
-- Run after schema-2.sql, or alone by: resume-hooks team init SERVICE --upgrade
do $$ begin
  if (select version from team.about) <> 2 then raise exception 'this makes form 3 of form 2' using errcode='22023'; end if;
end $$;
grant rh_owner to current_user;
set role rh_owner;
set search_path = pg_catalog, team, pg_temp;

-- Where pg_temp is not named PostgreSQL looks there before all else: a temporary table would stand for one of ours.
do $$ declare v_function regprocedure; begin
  for v_function in select oid from pg_proc where pronamespace = 'team'::regnamespace loop
    execute format('alter function %s set search_path = pg_catalog, team, pg_temp', v_function);
  end loop;
end $$;

-- The role that may act as a member, by both its name and its oid: a role made anew has the name, one that was made on
-- another server may have the oid. Null: he left.
alter table team.member add column role oid unique;
update team.member set role = to_regrole(quote_ident(login))::oid;
update team.about set version = 3, least = 3;

create or replace function team.me() returns int
language sql stable security definer set search_path=pg_catalog,team,pg_temp as
$$ select id from member where login = session_user and role = to_regrole(quote_ident(session_user))::oid $$;

create or replace function team.enter(p_machine uuid, p_label text) returns int
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_me int := me(); v_machine int;
begin
  if exists(select 1 from member where id is distinct from v_me
      and (login = session_user or role = to_regrole(quote_ident(session_user))::oid)) then
    raise exception 'your role is not the one that entered as %', session_user using errcode='RH403';
  end if;
  if v_me is null then
    insert into member(login, role, admin)
      values(session_user, to_regrole(quote_ident(session_user))::oid, not exists(select 1 from member))
      returning id into v_me;
  end if;
  insert into scope(kind, member) values('m', v_me) on conflict do nothing;
  insert into machine(member, uuid, label) values(v_me, p_machine, left(p_label, 100))
    on conflict(member, uuid) do update set label = excluded.label returning id into v_machine;
  insert into audit(act) values('enter');
  return v_machine;
end $$;

-- For an admin, of a member: 'keep' binds him to the role that bears his name, or the name p_to, today; 'retire' lets
-- nobody be him, and his name is free; 'give' and 'remove' do that, too, and make p_to the owner of what he shared, or
-- delete all that was his. What he kept private is given to nobody. How many sessions it was.
create function team.settle_member(p_login name, p_act text, p_to name) returns int
language plpgsql security definer set search_path=pg_catalog,team,pg_temp as $$
declare v_member int; v_to int; n int := 0;
begin
  if not exists(select 1 from member where id = me() and admin) then
    raise exception 'for an admin' using errcode='42501';
  end if;
  select id into v_member from member where login = p_login for update;
  select id into v_to from member where login = p_to and role is not null;
  if v_member is null or (p_act = 'give' and v_to is null) then
    raise exception 'no such member' using errcode='RH404';
  end if;
  if p_act = 'keep' then
    p_to := coalesce(nullif(p_to, ''), p_login);
    if to_regrole(quote_ident(p_to)) is null then raise exception 'no such role' using errcode='RH404'; end if;
    update member set login = p_to, role = to_regrole(quote_ident(p_to))::oid where id = v_member;
  elsif p_act not in ('retire', 'give', 'remove') then
    raise exception 'no such act' using errcode='22023';
  elsif v_member = me() then
    raise exception 'another admin can do that' using errcode='42501';
  else
    update member set role = null, admin = false, login = case when role is null then login
      else left(login::text, 40) || ' (left, ' || id || ')' end where id = v_member;
    delete from project_member where member = v_member;
    delete from grant_ where member = v_member;
    if p_act = 'give' then
      delete from grant_ where owner = v_member and session_id in (
        select session_id from session where owner = v_to or owner = v_member and scope in (
          select id from scope where kind = 'm')) or owner = v_member and member = v_to;
      update grant_ set owner = v_to where owner = v_member;
      update session set owner = v_to where owner = v_member and scope not in (select id from scope where kind = 'm');
      get diagnostics n = row_count;
      update project set owner = v_to where owner = v_member;
    elsif p_act = 'remove' then
      delete from grant_ where owner = v_member;
      delete from session where owner = v_member;
      get diagnostics n = row_count;
      delete from sdk_part where owner = v_member;
    end if;
  end if;
  insert into audit(act, detail) values(p_act, jsonb_build_object('member', p_login, 'to', p_to, 'sessions', n));
  return n;
end $$;
revoke all on function team.settle_member(name, text, name) from public;
grant execute on function team.settle_member(name, text, name) to rh_member;

-- What was done under a name before its role joined was another's.
drop policy read on team.audit;
create policy read on team.audit for select to rh_member using (
  login = session_user and at >= (select joined from team.member where id = (select team.me()))
  or exists(select 1 from team.member where id = (select team.me()) and admin));
reset role;
do $$ begin execute format('revoke rh_owner from %I', current_user); end $$;
