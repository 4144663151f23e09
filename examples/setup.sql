-- Two services in one database: the shop takes orders, the warehouse packs them. Both use the contract and the message type DEFAULT, which are built in.
select parley.create_queue('shop_queue');
select parley.create_queue('warehouse_queue');
select parley.create_service('shop', 'shop_queue', array['DEFAULT']);
select parley.create_service('warehouse', 'warehouse_queue', array['DEFAULT']);

create table orders (
  order_id integer generated always as identity primary key,
  conversation_handle uuid not null,
  is_packed boolean not null default false
);

create table parcels (
  order_id integer primary key
);
