package mcp

// Contract is the contract of the server as written from its documentation, without the digests
// of its tools.
const Contract = `
contract: 1
name: shop
server: mcptest
kinds:
  order:
    writes:
      create:
        tool: create_order
        key: {order_id: $.order_id}
        expect: {note: $.note, amount_cents: $.amount_cents, customer: $.customer}
        stamp: $.external_id
        made: $.id
        refused: ['^refused: ']
        throttled: ['^rate limited, retry after (\d+) s$']
      update:
        tool: update_order
        key: {order_id: $.order_id}
        expect: {note: $.note, amount_cents: $.amount_cents}
        ref: $.id
        idempotent: true
        conflict: ['^no order ']
      upsert:
        tool: put_order
        key: {order_id: $.order_id}
        expect: {note: $.note, amount_cents: $.amount_cents}
        idempotent: true
      delete:
        tool: delete_order
        key: {order_id: $.order_id}
        ref: $.id
        idempotent: true
        conflict: ['^no order ']
    reads:
      - {name: list, tool: find_orders, arguments: {order_id: "{key.order_id}"}, records: "$.orders[*]", limit: 1000}
      - {name: stamped, by: stamp, tool: find_orders, arguments: {external_id: "{stamp}"}, records: "$.orders[*]", limit: 1000}
      - {name: get, by: ref, tool: get_order, arguments: {id: "{ref}"}, record: $, absent: ['^no such order$']}
    record:
      ref: $.id
      stamp: $.external_id
      fields: {order_id: $.order_id, note: $.note, amount_cents: $.amount_cents, customer: $.customer, channel: $.channel}
    undo: {create: delete, update: update, delete: create}
    profile: {settle: 200ms, horizon: 1s}
`
