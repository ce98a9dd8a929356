// Package jira writes issues and comments to Jira, Cloud and Data Center, and
// reads them back.
//
// Jira has no idempotency key: a create that is sent twice makes two issues,
// and none of its writes can be made conditional. What we have instead is a
// stamp that is sent with the create, in the same call: in an entity property,
// which proves which write made the issue, and in a label, by which the issue can be
// searched. A comment has it in a property of its own. A user's clone of an
// issue has the labels and not the property, and so is not mistaken for ours.
//
// # Business keys
//
//	{"project": "OPS", "reference": "invoice-7721"}     an issue by your own name for it
//	{"issue": "OPS-12"}                                 update, delete
//	{"issue": "10012", "project": "OPS"}                update, delete: by id
//	{"issue": "OPS-12", "reference": "reminder-1"}      a comment by your own name for it
//	{"issue": "OPS-12", "comment": "10203"}             update, delete
//
// The reference of an issue is a label, as a user may set one; that of a
// comment is in our property. Both are compared byte by byte. Address
// updates and deletes by the issue if you know it: that is a strong read,
// while a reference goes through the search index, which may lag by minutes.
//
// # Fields
//
// Fields have the names of the API: summary, description, issuetype, priority,
// assignee, labels, components, duedate, customfield_10010. What Jira names by
// an object is written and shown by its name ("High"), users by account ID
// (Cloud) or name (Data Center), a parent by its key. Null clears a field, an
// empty array a list. Labels are those that are not ours; setting them keeps
// ours. Texts are written as wiki markup, in version 2 of the API; where rich
// text comes back it is shown as plain. Times are shown in RFC 3339.
//
// The status changes only by a transition: an update that expects another
// status makes the one transition that leads to it, and where there are
// several, the payload names one ({"transition": "Resolve"}). Other fields are sent
// with it if the screen of the transition has them; if not, the intent is refused,
// since one intent is one send. There is no upsert.
//
// # When the answer is lost
//
// What a write returns, for each way in which its answer can be lost: ? is
// unknown, no is refused, no! is refused because the record is not as it was, ?!
// is unknown with the same hint, - is provably not sent, wait is throttled,
// login is a refused login, yes is answered. Each cell is a test.
//
//	the answer          create  edit  transition  delete  comment  its edit  its delete
//	no connection       -       -     -           -       -        -         -
//	    the transport never had one: nothing can have left us
//	serverInfo fails    -       -     -           -       -        -         -
//	    it is asked before anything is sent
//	cut, applied        ?       ?     ?           ?       ?        ?         ?
//	    the server received the request or not; the client cannot distinguish the two
//	cut, not applied    ?       ?     ?           ?       ?        ?         ?
//	    as above
//	none in time        ?       ?     ?           ?       ?        ?         ?
//	    it may land after we gave up: absence counts only after Horizon
//	2xx, body cut       yes     yes   yes         yes     yes      yes       yes
//	    the status counts, whatever the library makes of the body
//	2xx, nothing done   yes     yes   yes         yes     yes      yes       yes
//	    a yes is evidence; the read finds nothing done
//	301                 ?       ?     ?           ?       ?        ?         ?
//	    never followed: it would turn the write into a GET that looks like success
//	400                 no      no    no          no      no       no        no
//	    validated before it is stored
//	401                 login   login  login       login   login    login     login
//	    not let in
//	404                 no      no!   no!         no!     no       no!       no!
//	    what was read before is gone or hidden; an earlier send may have done it
//	409, applied        ?       ?!    ?!          ?!      ?        ?!        ?!
//	    a conflicting update: whose went in, it does not say
//	409, not applied    ?       ?!    ?!          ?!      ?        ?!        ?!
//	    as above
//	429                 wait    wait  wait        wait    wait     wait      wait
//	    Retry-After, or X-RateLimit-Reset, which may go without seconds
//	502, applied        ?       ?     ?           ?       ?        ?         ?
//	    a gateway speaks for itself, not for Jira
//	503 + Retry-After   ?       ?     ?           ?       ?        ?         ?
//	    the header says when to ask again, not that nothing was done
//
// How records are then read, and when an empty result proves absence.
//
//	key                 write       path    strength  absence counts
//	project, reference  create      search  weak      after Settle and Horizon
//	    labels; the issues found are read themselves, and the one that the answer named
//	project, reference  update      search  weak      after Settle and Horizon
//	    the label of the reference, as above
//	project, reference  delete      search  weak      after Settle
//	    the label of the reference, as above
//	issue               update      get     strong    at once
//	    the issue itself, and the permission for its project where it is not there
//	issue, reference    comment     list    strong    after Horizon
//	    all comments of the issue, and the property of each
//	issue, comment      its delete  get     strong    at once
//	    the comment itself, and the issue where it is not there
//
// # What it does not know
//
// How far the index lags: no bound is published, so Settle is configuration; if it is
// too short, a second issue can be made, and only the recheck finds it. How long a write
// may still be applied: likewise Horizon. Whether an issue is hidden by a security level
// or by a permission that depends on the issue, or was moved to a project that we may
// not see: Jira returns 404 as if it were gone, and only the permission for the project
// can be read. The same is true of a comment that was hidden since. An issue whose
// labels another actor removed is found only if the answer to its create arrived;
// otherwise it is made again. A delete by reference whose answer was lost counts as done
// if another actor removed the label or moved the issue meanwhile: name the issue
// instead. A Jira so old that it drops the properties of a comment drops our stamp.
// Which e-mails and automations a write triggers: they cannot be taken back. The package
// does not upload attachments, log work, link issues or create many at a time.
package jira
