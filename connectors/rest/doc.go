// Package rest makes a destination of an HTTP API that a YAML file declares.
//
// A declaration defines the login, which request makes, changes or deletes a
// record, which requests find it again, how a record of an answer is parsed and
// what the API promises. [Load] checks it and lists every error with its line;
// [New] makes a connector from it for one account. Some declarations come with the
// package ([Shipped]); use them, or start a new one from them.
//
// # The file
//
// Unknown members, empty values, anchors, aliases and tags are refused. Members in
// brackets are optional.
//
//	declaration: 1
//	name: items                          # lower-case letters, digits, dashes
//	system: Example items                # for people
//	base_url: https://api.example.com    # http only on this machine; {param.x} in it
//	[hosts: [login.example.com]]         # further hosts that may be reached; no other ever is
//	[parameters:                         # what an account gives; pattern matches the whole value
//	  shop: {pattern: '[a-z]+', about: the shop, [default: main], [example: main]}]
//	[auth:                               # one of these, or a list of them; a secret is only named here
//	  bearer: {secret: token}
//	  basic: {username: "{param.user}", secret: token}
//	  header: {name: X-Api-Key, secret: key, [prefix: "Key "]}
//	  oauth2: {token_url: /token, client_id: "{param.id}", secret: s, [scopes: [a]], [style: header|params],
//	    [grant: refresh_token, refresh: refresh_token, [rotates: true]]}    # rotates: each use gives the next one
//	  oauth2: {grant: jwt_bearer, token_url: /token, client_id: "{param.account}", secret: private_key, [scopes: [a]],
//	    [subject: "{param.user}"], [audience: …], [key_id: …]}    # signed with a private RSA key in PEM
//	  session: {path: /login, body: {user: "{param.user}", password: "{secret.password}"} | form | text, [headers],
//	    token: $.token | {header: Name}, [header: X-Session], [prefix: "Token "] | cookie: SID, [must: [CONDITION…]],
//	    [ended: {status: 401} | [{status: 200, where: CONDITION}…]]}    # a login is a call of its own
//	  sigv4: {service: ses, region: "{param.region}", key_id: "{param.key_id}", secret: key}]
//	[read_auth: {bearer: {secret: read_token}}]    # as auth, for reads alone; probe tries both. See below
//	[headers: {Accept: application/json}]
//	[read_as: json | xml]                # all answers of the API; default json
//	[rate: {calls: 100, per: 1m}]
//	[throttle: {header: Retry-After} | {wait: 30s} | {header: X-RateLimit-Reset, form: epoch}]
//	[refusal: REFUSAL]                   # of all writes
//	probe: LOOK                          # with first: true also made before the first write that is unique
//	kinds:
//	  item:
//	    key: [sku]                       # or several forms: [[sku], [id]]
//	    [key_patterns: {sku: '[A-Z0-9-]+'}]
//	    [scope: [shop]]                  # members of every key that records do not show
//	    [first_sent: {skew: 60s, form: unix | rfc3339 | date | snowflake}]   # how {first_sent} is written
//	    writes: {create: WRITE, update: WRITE, upsert: WRITE, delete: WRITE}
//	    reads: [READ…]
//	    [list: LIST]                     # of all records, for evaluations
//	    record: RECORD
//	    [summary: SUMMARY]               # how records are named to people
//	    [undo: {create: delete | {update: {state: closed}}, update: update, delete: create}]
//	    [profile: {write_only, stamped, stamps_updates, fresh_keys, bulk_wait, settle, horizon, recheck, rollback, confirm_reads,
//	      volatile: [/updated], compare: {/title: [{rule: trim}]}, irreversible: [create], never_repeat: [create],
//	      send_timeout, read_timeout}]   # as connectors.Profile; what is left out is not promised
//	    [sample: {key: {sku: "s-{sample}"}, create: {…}, [update: {…}], [payload: {…}]}]
//	    [claims: [{about: look-up, says: …, source: https://…, [assumed: true]}…]]
//
// A SUMMARY is the name of a record, and which of its fields an approver reads first. All but text may be
// left out, and text alone may be written for it:
//
//	text: "order {sku}[ for {amount}][ to {customer}]"    # a part in brackets is left out where it lacks a value
//	verb: send                                            # what a create is called
//	amount: /amount, currency: /currency | EUR            # JSON Pointers to fields
//	minor: true                                           # 2999 is 29.99 of most currencies
//	subject: /title, customer: /email
//
// A field in braces is {amount}, {subject}, {customer}, or the name of a field. Nothing is decided by a summary.
// Without one a record is named by its kind and its key.
//
// A LOOK is a request that only reads, and whose answer must be as declared: {path: /me, [method: GET | POST],
// [query], [headers], [body | form | text | graphql], [must: [CONDITION…]]}. It must never be one that
// writes: it is made by probes, by doctor, around writes, and again and again. A document of GraphQL is
// refused where it has another operation than a query. Of another POST nothing shows that it does not
// write, so a check warns of it: want one that the API documents as a read, such as an RPC method "get".
//
// Of a list of logins an account has one: that whose secrets it gives, all of them and no others. A
// parameter that only other logins use is not required then.
//
// A refresh token that rotates must come from a file: the next one replaces it there, on disk, before the
// token that came with it is used. A lock on a file beside it keeps processes of one machine, or of one
// shared folder, from exchanging it at the same time; each takes what the last one kept. Where the answer
// of an exchange is lost, or the process dies in it, the file has the old one. An API that takes that no
// more refuses the login, and a new refresh token belongs into the file.
//
// With read_auth an observation says other_login, where the two logins differ when the read is made: in
// their secrets (of a refresh token: in that), and in the names that they log in with. Equal ones, or such
// that cannot be had or have less than four bytes, are one login, and so are all where the path of a
// read has a secret. Whether both are of one account is not known. A client certificate is
// that of the connection, and the same for both.
//
// With grant: jwt_bearer (RFC 7523, as of Google's service accounts) the secret is a private RSA key in PEM,
// with its line ends, and key_id its id, which some APIs want (kid). The key never leaves the process. It signs (RS256) that client_id logs in, for subject if
// there is one, at audience (default the token's address), and token_url gives a token for that.
//
// With session the login is a POST of its own, which alone may have {secret.x} in its body. Of its answer
// the calls after it carry the token, in header after prefix (default Authorization: Bearer), or the
// cookie, and no other one. The login succeeded where the answer is a success with that, and must holds; many
// APIs set the cookie for any call, so must is required with cookie. Any other answer in JSON refuses the login.
// Ended is by which answers the API says that the session has ended. They come before all other rules, and
// must mean that nothing of the call was applied: it is made once more by a new session, and if
// that has ended as well, the login is refused. Only 401 needs no where. One session serves all calls of
// a process, so that APIs which allow one for each user want a user for each process.
//
// Graphql is the envelope of GraphQL, in a READ as well (query and variables only; a page's body is a
// variable, and any error makes the read one). The braces of the query are its own. A mutation was done
// where result is there and no error is. Errors without any data are a limit or a refusal where all
// of their codes say so, and data with errors is unknown: a part may have been done. Errors at
// user_errors are a refusal; an answer of the write's own rules, such as a conflict, comes first.
//
// Irreversible and never_repeat are two facts. An irreversible write cannot be undone, and that no read
// shows it proves nothing; under a key that the API knows it may be sent again. A write of never_repeat
// is not sent a second time, key or not, unless the first provably did nothing or a reviewer says so.
//
// A WRITE is one request and what its answer means:
//
//	method: POST                         # POST, PUT, PATCH, DELETE
//	path: /shops/{param.shop}/items
//	[query: {q: "{key.sku}"}] [headers: {…}] [body: {…} | form: {…}]
//	[text: "…", type: text/xml | text/plain]    # in place of body
//	[graphql: {query: "mutation …", variables: {…}, result: $.data.issueCreate,
//	  [user_errors: $.data.issueCreate.userErrors]}]    # in place of method and body
//	[ref: $.id | {header: Location, match: '([^/]+)$'}] [url: $.link] [version: $.rev | {header: ETag}]    # for the receipt
//	[needs: ref | version]               # of the one record that the read before it found
//	[idempotency: {header: Idempotency-Key | query: requestid | stamp: true, [form: raw|quoted|uuid4|hex25|int31],
//	  window: 24h, [replay: CONDITION]}]
//	[condition: {headers: {If-Match: "{version}"}, query: {…}, body: {…}, [if_absent: {headers: {If-None-Match: "*"}}]}]
//	[unique: true]                       # a repeat addresses the same record by a key that is enforced
//	[replaces: true]                     # what is not in the request is removed
//	[answers: [{status: 403, [where: CONDITION], means: throttled}…]]
//	[prepare: {method: POST, path: /drafts, body: {…}, ref: $.id, [idempotency, answers, refusal]}]    # of a create
//	[unused: {path: "/drafts/{prepared}", must: [CONDITION…]}]    # what was prepared had no effect: both are required
//
//	[refusal: REFUSAL]                   # where this write's refusals differ
//
// Prepare is a call before that of the write, which has no effect without it: a draft before it is
// sent, an authorisation before it is captured. What it made, {prepared}, is recorded before the
// second call is made, and every repeat is of the same. So a lost answer of the first leaves a draft
// that is never sent, and one of the second is a lost answer like any other. So is a conflict of the second, and
// a 404 or 410 that no rule of answers explains: another actor, or a proxy that repeats, may have used what was
// prepared. The key of the first is another than that of the write. As long as unused is answered as declared, what was prepared had no effect: with that, and after the
// horizon, also an irreversible write that is not found is known not to be applied. Reads must not
// show what is only prepared: want record.keep, or a request for what is finished.
//
// {"[mail]": {To: "{fields.to}", Subject: …, X-Any: …, text: …}} in a body is a mail as text in
// UTF-8, encoded as base64url. Addresses are checked, a line break in a header is refused.
//
// Throttle is how long to wait when the API says "not now", to a write or to a read: as a header says
// in seconds or as a time in seconds since 1970, else so long. Retry-After is always heeded. That is
// 429, or {status: [403, 429], where: CONDITION, header: …} where another status says so as well; there
// may be a list of these. The answers of a write come first.
//
// A REFUSAL is where an answer has the destination's own words: {code: $.error.code, text:
// $.error.message, request: {header: Request-Id}}. Each is a path, {header: Name}, or a list of them,
// of which the first that has a value counts. They are shown in the outcome and to reviewers. What is
// left out, or not there, is looked for in the members that most APIs use. Our credentials are masked
// wherever the destination repeats them.
//
// An answer means answered, refused, conflict, throttled, login_refused, busy or
// unknown. Busy means that an earlier
// send of this write is at work: its key stays, and it is waited for (Retry-After, or 5 seconds)
// and read. The first rule that matches decides, otherwise the status, as in package
// httpsend: 401 is a refused login, 403 a refusal of this write. The key
// is sent in the header or the query only where one is named, or in the body as
// {idempotency_key}. With stamp: true it is the {stamp} of the request, where the API keeps its place unique,
// such as an id that the client chooses; a conflict then is of unknown fate, since only a send of this write can have
// made that record. Unique: true would say it of the business key. A form other than raw and quoted is made of a hash of our key, the same for each
// repeat: a UUID of version 4, 25 hex digits, or a number from 1 to 2147483647. Two writes can share
// such a number, so int31 needs the stamp in the request and in records. The condition is sent only when the engine asks for it.
//
// A READ is one request and where the records are in its answer:
//
//	name: list
//	by: key | stamp | [key, stamp] | ref
//	[strength: strong, [strong_if: CONDITION]]    # shows everything applied before; default weak
//	[method: GET | POST | HEAD] path: … [query] [headers] [body | form]
//	records: $.items[*] | record: $      # a list, which must be there, or one object
//	[records: {path: $.query.items[*], missing: none}]    # a list that is left out where it is empty
//	[absent: [404, 410], [absent_where: CONDITION]]    # only if the answer is JSON
//	[absent: [404], absent_empty: true]  # or has no body
//	[absent: [200], absent_where: {path: $.deleted, equals: true}]    # of a list only another status, with absent_where
//	[visible: LOOK]                      # must succeed when nothing was found
//	[absent_if_visible: /path]           # the same, shorter, for a GET
//	[accept: [207]] [must: [CONDITION…]] [version: $.rev | {header: ETag}]
//	[shared: true]                       # one call serves many queries: refused where the requests differ
//	[rate: {calls: 1, per: 1m}]          # of this read alone, over all writes of the process
//	[newest: 500]                        # the API shows no more of the list: a full one proves no absence
//	[search: text]                       # hits that are not ours do not count; never strong
//	[complete: true]                     # by ref: records found by other reads are read again by this one
//	[only_refs: true]                    # a list whose records show their ref alone: each is read by ref
//	[paging: {link: next} | {next: $.after, query: after | body: after, [more: $.more]}
//	  | {next_url: $.next} | {page: page, size: 100}, max_pages: 10]
//	[bulk: 100]                          # one request for many queries; only for ReadMany
//
// A by-key read with {key.…} in its request queries that key; one without reads
// all. What is repeated in a bulk read is below "[...]": in a
// body instead of a list, {ids: {"[...]": "{key.id}"}}, and in a query as
// {ids: {"[...]": "{key.id}", join: ","}}. A list with more pages than are read
// is an error, never a short list.
//
// Where every READ of a kind is a list without {key.…} and {stamp}, as the history of a channel, one
// list answers up to 100 queries at once: those that wait while a call is in progress, or for
// bulk_wait (default 0) after the first. With 10s, up to 600 writes are read by six lists a minute,
// where the concurrency of the destination allows as many reads to wait.
//
// Where the path of absent_where is of several values, such as $.errors[*].code, all of them must
// fulfil it. An absence is believed only if visible can be read, where there is one.
//
// A member of the key that is in scope, such as a channel or a spreadsheet, is named by every read by
// key or stamp, and by the list; a record is taken to be of the scope in which it was read, and is
// compared by the rest of its key. Requests of a bulk read, and lists that answer many queries, are
// of one scope each.
//
// {first_sent} is when the first send of the write was announced; in a read, that less skew: how far
// the destination's clock may be from that of the ledger, and what either may be set by. A read with
// it proves absence only of what we sent. So it begins at the first send only for a create that was
// sent, and only by stamp, or where fresh_keys says that the key is only ever ours. Any other
// read with it begins with the beginning of time (0, 1970-01-01): one after the horizon, on which a second
// send may rest, since the clocks may differ by more than skew; one before a send, of a write that changes
// what may be older, or by a key under which another actor may have made a record before.
// Writes carry the same time in every send, without skew. Lists for many queries begin with the
// earliest of them, where their first sends are at most an hour apart.
//
// A read with a rate waits for its next call, or fails as if it was throttled where that comes too late
// for it. Each page is a call. With shared and a bulk_wait as long as the time between two calls, one
// call serves all writes that wait.
//
// A LIST is one request that shows every record of the kind:
//
//	name: all
//	[strength: strong, [strong_if: CONDITION]]
//	path: … [method] [query: {since: "{from?}"}] [headers] [body | form]
//	records: $.items[*]
//	[paging] [max_pages: 100] [must] [accept] [visible]     # as in a READ
//	[stable: true]                       # new records come at the end, and none is removed while pages are read
//	[changed: $.updated]                 # when it was created or last changed, RFC 3339
//
// {from} and {until} are the ends of the requested time; an API that ignores both
// lists everything. A list whose pages are counted or linked, and not
// stable, is not complete when it has several; nor is one with more pages than are
// read.
//
// A RECORD is how a record is parsed:
//
//	ref: $.id                            # or in a header, as in a WRITE, where one record is read
//	[url: $.link] [version: $.rev]
//	[stamp: {path: $.body, [match: "<!-- (rb-[a-z2-7]+) -->"] | [form: uuid4|hex25]}]   # form: as {stamp} is sent
//	[keep: CONDITION]                    # others do not count
//	[only: ["{param.names}", id]]        # all that "..." can show; an intent about others is refused
//	[nulls: true]                        # a missing value is shown as null, so no field can be expected absent
//	[settles: {path: $.status, open: [pending], good: [succeeded], [bad: [failed]], within: 10d}]
//	fields:
//	  "...": $.properties                # every member of an object
//	  title: $.title
//	  body: {path: $.body, strip: "<!-- .* -->"}
//	  mark: {path: $.body, match: "<!-- (.*) -->"}     # the first group
//	  name: {path: "$.name[*].text", join: ""}
//	  tags: {path: "$.tags[*].name", list: true, [without: "^rb-"]}
//	  mark: {header: x-amz-meta-mark}    # of a read of one record; all fields of a HEAD are in headers
//	  amount: {path: "$.custom_fields[*]", where: {id: 77}, take: value}   # of the one element; two are an error; a brace in it is written twice
//	  size: {path: "$.custom_fields[*]", where: {id: 78}, take: "values[0]"}  # and of its list the one value
//
// With settles a record is verified only at a good status. At any other that is not bad it is read
// again, ever more rarely, until within has passed; then a reviewer decides, and so does one at a bad
// status. A record that became bad after it was good is found by a recheck when within has passed since
// the send, unless profile.recheck says another time.
//
// An account names members where a path has '{param.x}' as the whole quoted name of one, as in
// $.properties['{param.x}'], or as the text that a filter compares with: [?@.name == '{param.x}']. Its value is
// one name, whatever is in it, and never a part of the path. A path is checked with the parameter's default,
// else its example, and again with the value of each account, so one of them is needed. No two parameters
// may name one member, nor one that the file names itself beside it. What requests send and ask for must be
// named by the same parameter as what records show; the name in intents stays that of fields. Nothing says
// that an API knows a name: let the probe, or visible, ask for it, or a wrong one finds nothing. A probe that
// does is made once before an absence is believed, for an account with other names than the defaults.
//
// A CONDITION is {path: JSONPath} or {header: Name} with one of equals (a value
// or a list of them), contains and exists (something that is not null).
//
// # Answers in XML
//
// With read_as: xml the paths of a file lead into the one element of each answer: $.items.item[*].name is
// <items><item><name>. An attribute is $.item['@id']. Names are without their prefixes; two elements, or two
// attributes, of one name and different namespaces are an error. Values are text, so what they are
// compared with is in quotes; a number is compared by the rule numeric. An element with xsi:nil is null.
//
// The paths say of which type an element is, not the answer: with [*] or [0] after its name it is a list, also
// if it is there once; where a path leads into it, an object, whose text is '#text'; otherwise its text,
// whatever its attributes. What is named as one and is there twice is an error, and so is text where only
// elements are named; paths that do not agree are refused. A list without elements is not there, so records want missing: none: it is empty where the element
// that it would be in is there. What is not named is text, an object, or a list if there are several; so
// fields by "..." are refused.
//
// A document type, an entity that XML does not have by itself, another encoding than UTF-8, a page of HTML and
// an element more than 128 deep make an answer unreadable. Absence is believed by absent_where or an empty
// body alone: gateways answer in XML as well. An answer in JSON says nothing. A write is judged by its status
// where its answer cannot be read.
//
// # Placeholders
//
// In writes: {key}, {key.x}, {expect}, {payload}, {fields} (the two together)
// and what is below them, {stamp}, {idempotency_key}, {first_sent}, {prepared}, {param.x}, {absent} (the
// paths of the intent); and of the one record of the read before {ref},
// {version}, {stamp_before} and {before.x}. In reads: {key.x}, {stamp}, {ref},
// {first_sent}, {param.x}, each in its kind of read. In samples {sample}, the name, and
// {sample_hex}. Elsewhere {param.x}. A brace is written twice.
//
// In a path {secret.x} is a secret of that name, for APIs that want theirs there; so it is in the body of a session. It is put in only when
// a request is made, and masked in whatever the destination says of it.
//
// A value never leaves its position. In a path it is one segment or a part of
// one; slashes, dots alone and controls are refused. {key.path/} is as many segments as it has, such as the
// path of a file: each is escaped by itself, and empty ones, "." and ".." are refused. In a body a string that is
// one placeholder becomes the value, of whatever type; its member is left out
// when there is none, and so is an object or a list all of whose placeholders
// have none. In longer text a placeholder takes scalars; {x?} leaves the member
// out and {x|} puts nothing in where there is no value, which otherwise is an
// error. In the longer text of reads only letters, digits and -_.@: are allowed,
// since how that text quotes is unknown, and in parameters commas. The member "..." spreads objects,
// and the element {"...": "{fields.tags}"} a list. A field that a write does not
// mention is refused, and so is text that would be read back as a stamp.
//
// The name of a member may hold {param.x}, which makes it as it is and never a path: "{param.field}":
// "{key.id}". It wins over a member of that name that is spread. {x|base64} and {x|base64url} are the value in that encoding, padded. In a text of an XML
// type each value is escaped as text or as an attribute; put it nowhere else, such as into a comment.
//
// # What an observation proves
//
// All possible lookups by key and stamp are made, and the read by ref where a ref
// is known; records are merged by ref only. On every record the key is compared again, exactly or by the trim, fold, string
// and unescape rules that the profile gives for the field, or the stamp. The
// observation is strong only when a strong lookup by key was part of it (for
// writes that leave their stamp, by stamp is enough) and each record was shown by
// a strong read. A list of several pages that are counted or linked is never
// strong, since records can slip from page to page; nor is a counted
// page with other records and without ours: it may be full and seem short.
//
// A record is known by the fields of the key, and by its stamp. So a list proves no absence whose request does
// not name one of these fields and none of whose records has its place: then the path may be a wrong one.
// (Of a path of several members the object that it is in will do, since APIs leave out what has no value. A read
// by stamp alone needs the place of the stamp. An empty list, and one all of whose records are left out by keep,
// shows nothing of this.) A field of the key that is a list, or is not among only, is refused.
//
// Whatever is doubtful is an error and never absence: an answer that lacks the
// list or object that the declaration names, a record without its ref or
// without a place for the queried key, one of several errors that says something else than absence, a record that was not queried (an API that does not know a parameter ignores it) except in a search of text, hits of a search none of which shows the key, or quotes all that was searched for as words of their own (an API that ignores the search), JSON with a member
// twice, a 404 that is no JSON, or empty without absent_empty.
//
// An intent that expects, requires or expects absent what reads cannot show is
// refused before anything is sent: a field that no path leads to, or one
// that is not among only. With nulls nothing can be absent.
//
// What the package does not know: whether a declaration is true. A settle time
// that is too short, a "unique" that is not enforced, a read that is called strong
// and comes from a replica make duplicates that the package cannot detect; `readback probe` measures them. It uploads no files, and
// follows no asynchronous job other than one whose record shows its status (settles).
package rest
