-- The six procedures of drain.sql in T-SQL, statement for statement as far as the language goes. The daemon's interpreter runs them.
-- They receive from the same queue, send the same type, and fill a table of the same columns.

create table dbo.audit_rows (id int identity not null, at datetime2, payload nvarchar(max), audited_user nvarchar(256), original xml)
go
-- One message a transaction, answered with an echo.
create procedure dbo.drain_basic as
begin
  set nocount on
  declare @handle uniqueidentifier, @type sysname, @body varbinary(max)
  while 1 = 1
  begin
    begin transaction;
    receive top (1) @handle = conversation_handle, @type = message_type_name, @body = message_body from drain
    if @@rowcount = 0
    begin
      commit
      break
    end
    if @type = N'bench'
    begin
      send on conversation @handle message type [bench] (@body)
    end
    else
      end conversation @handle
    commit
  end
end
go
-- The same, a commit every hundred messages.
create procedure dbo.drain_batched as
begin
  set nocount on
  declare @handle uniqueidentifier, @type sysname, @body varbinary(max), @open int = 0
  begin transaction
  while 1 = 1
  begin
    receive top (1) @handle = conversation_handle, @type = message_type_name, @body = message_body from drain
    if @@rowcount = 0 break
    if @type = N'bench'
    begin
      send on conversation @handle message type [bench] (@body)
    end
    else
      end conversation @handle
    set @open = @open + 1
    if @open >= 100
    begin
      commit
      set @open = 0
      begin transaction
    end
  end
  commit
end
go
-- All messages of a group in one call and one transaction, and then one by one.
create procedure dbo.drain_cursor as
begin
  set nocount on
  declare @messages table (place bigint, handle uniqueidentifier, type_name sysname, body varbinary(max))
  declare each_message cursor forward_only read_only for select handle, type_name, body from @messages order by place
  declare @handle uniqueidentifier, @type sysname, @body varbinary(max)
  while 1 = 1
  begin
    begin transaction;
    receive queuing_order, conversation_handle, message_type_name, message_body from drain into @messages
    if @@rowcount = 0
    begin
      commit
      break
    end
    open each_message
    while 1 = 1
    begin
      fetch next from each_message into @handle, @type, @body
      if @@fetch_status <> 0 break
      if @type = N'bench'
      begin
        send on conversation @handle message type [bench] (@body)
      end
      else
        end conversation @handle
    end
    close each_message
    delete from @messages
    commit
  end
  deallocate each_message
end
go
-- The same by the number of the message type in place of its name.
create procedure dbo.drain_cursor_by_id as
begin
  set nocount on
  declare @messages table (place bigint, handle uniqueidentifier, type_id int, body varbinary(max))
  declare each_message cursor forward_only read_only for select handle, type_id, body from @messages order by place
  declare @handle uniqueidentifier, @type int, @body varbinary(max), @ours int
  select @ours = message_type_id from sys.service_message_types where name = N'bench'
  while 1 = 1
  begin
    begin transaction;
    receive queuing_order, conversation_handle, message_type_id, message_body from drain into @messages
    if @@rowcount = 0
    begin
      commit
      break
    end
    open each_message
    while 1 = 1
    begin
      fetch next from each_message into @handle, @type, @body
      if @@fetch_status <> 0 break
      if @type = @ours
      begin
        send on conversation @handle message type [bench] (@body)
      end
      else
        end conversation @handle
    end
    close each_message
    delete from @messages
    commit
  end
  deallocate each_message
end
go
-- A group in one INSERT: XML whose attributes become columns, beside the XML itself. No answer.
create procedure dbo.drain_set_xml as
begin
  set nocount on
  declare @messages table (place bigint, type_name sysname, body xml)
  while 1 = 1
  begin
    begin transaction;
    receive queuing_order, message_type_name, cast(message_body as xml) as body from drain into @messages
    if @@rowcount = 0
    begin
      commit
      break
    end;
    with xmlnamespaces (default 'http://bench.example/audit')
    insert into dbo.audit_rows (at, payload, audited_user, original)
    select body.value('(/Datagram/@date-time)[1]', 'datetime2'), body.value('(/Datagram/@payload)[1]', 'nvarchar(max)'),
      body.value('(/Datagram/@user)[1]', 'nvarchar(256)'), body
    from @messages where type_name = N'bench' order by place
    commit
    delete from @messages
  end
end
go
-- The same of a body of bytes: the time in eight, the length of the payload in four, the payload, the length of the user in four, the user.
create procedure dbo.drain_set_binary as
begin
  set nocount on
  declare @messages table (place bigint, type_name sysname, body varbinary(max))
  while 1 = 1
  begin
    begin transaction;
    receive queuing_order, message_type_name, message_body from drain into @messages
    if @@rowcount = 0
    begin
      commit
      break
    end
    insert into dbo.audit_rows (at, payload, audited_user)
    select dateadd(second, cast(substring(body, 1, 8) as bigint) / 1000000, cast('1970-01-01' as datetime2)),
      cast(substring(body, 13, cast(substring(body, 9, 4) as int)) as varchar(max)),
      cast(substring(body, 17 + cast(substring(body, 9, 4) as int), 256) as varchar(256))
    from @messages where type_name = N'bench' order by place
    commit
    delete from @messages
  end
end
