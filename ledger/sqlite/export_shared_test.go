package sqlite

// Path is the file of the ledger.
func (l *Ledger) Path() string { return l.path }

// SharedQueries are the statements of what workers share, by name.
var SharedQueries = map[string]string{
	"entries": sqlEntries, "entries of": sqlEntriesOf, "entry": sqlEntry, "taken": sqlTaken, "refuse": sqlRefuse,
	"outbox": sqlOutbox, "refused": sqlRefused, "broken": sqlBroken, "survey": sqlSurvey,
	"notes": sqlNotes, "note": sqlNote,
	"done": sqlDone, "followed": sqlFollowed, "clear": sqlClear, "clear events": sqlClearEvents, "forget": sqlForget,
	"forget refused": sqlForgetRefused,
}

// MaxPruned is how many writes one transaction looks at to forget them.
const MaxPruned = maxPruned

// PaperQueries are the statements about papers, by name.
var PaperQueries = map[string]string{
	"paper": sqlPaper, "update": sqlUpdatePaper, "numbered": sqlNumberedPaper,
	"all": sqlPapersAll, "state": sqlPapersState, "subject": sqlPapersSubject, "trace": sqlPapersTrace, "binder": sqlPapersBinder,
	"count all": count(sqlPapersAll), "count state": count(sqlPapersState), "count binder": count(sqlPapersBinder),
	"due": sqlDuePapers, "done": sqlDonePapers, "stirring": sqlStirring, "forget": sqlForgetPaper, "forget bound": sqlForgetBound,
}
