package mailtest

// Vice is one way in which a submission server misbehaves.
type Vice string

// The vices, in the order of a submission.
const (
	Unreachable   Vice = "unreachable"    // a new connection is closed at once
	RefusedSender Vice = "refused-sender" // MAIL: 550
	RefusedRcpt   Vice = "refused-rcpt"   // the last RCPT that shows it: 550
	Greylisted    Vice = "greylisted"     // RCPT: 450
	RefusedData   Vice = "refused-data"   // DATA: 554
	CutBeforeDot  Vice = "cut-before-dot" // the connection is cut in the middle of the message; nothing is done

	Refused       Vice = "refused"        // the dot: 554, nothing done
	Throttled     Vice = "throttled"      // the dot: 451, nothing done
	DroppedBefore Vice = "dropped-before" // the dot: the connection is cut, nothing is done
	LostAnswer    Vice = "lost-answer"    // the dot: taken over, then the connection is cut
	Silence       Vice = "silence"        // the dot: taken over, and never answered
	LateCommit    Vice = "late-commit"    // the dot: no answer; taken over Options.Lag after the client has hung up
	Stalled       Vice = "stalled"        // the dot: no answer; taken over at Release
	Nonsense      Vice = "nonsense"       // the dot: taken over, and answered with what is neither yes nor no
	Phantom       Vice = "phantom"        // the dot: 250, and nothing done
	PutOff        Vice = "put-off"        // the dot: taken over, and answered 451
	ShutDown      Vice = "shut-down"      // the dot: taken over, and answered 421

	FiledTwice     Vice = "filed-twice"     // taken over, and there are two of it
	FiledLate      Vice = "filed-late"      // taken over, and not in the mailbox before Options.Lag; in memory
	TakenAway      Vice = "taken-away"      // taken over, and gone from the mailbox again; in memory
	Capitals       Vice = "capitals"        // taken over with the subject in capitals
	WithoutCc      Vice = "without-cc"      // taken over without the header Cc
	OtherMessageID Vice = "other-messageid" // taken over with a Message-ID of the server's own
	WithoutStamp   Vice = "without-stamp"   // taken over without headers that begin with X-
)

// Vices lists them all.
func Vices() []Vice {
	return []Vice{Unreachable, RefusedSender, RefusedRcpt, Greylisted, RefusedData, CutBeforeDot, Refused, Throttled,
		DroppedBefore, LostAnswer, Silence, LateCommit, Stalled, Nonsense, Phantom, PutOff, ShutDown,
		FiledTwice, FiledLate, TakenAway, Capitals, WithoutCc, OtherMessageID, WithoutStamp}
}

// How often a vice shows.
const (
	Off    = 0  // never again
	Always = -1 // until it is switched off
)

// SetVice switches a vice on for the next so many commands that it can meet;
// Always for all of them, Off for none.
func (s *Server) SetVice(v Vice, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vices[v] = times
}

// Left is how often a vice is still to show: a test that wants it to have shown
// looks for 0.
func (s *Server) Left(v Vice) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vices[v]
}

// shows reports whether the vice shows now, and counts it.
func (s *Server) shows(v Vice) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vices[v] > 0 {
		s.vices[v]--
		return true
	}
	return s.vices[v] < 0
}

// Held receives a value each time a message is left without an answer.
func (s *Server) Held() <-chan struct{} { return s.held }

func (s *Server) noteHeld() {
	select {
	case s.held <- struct{}{}:
	default: // nobody counts
	}
}

// Release has the messages taken over that Stalled holds back, waits for that,
// and returns how many they were. Their clients must have given up.
func (s *Server) Release() int {
	s.mu.Lock()
	stalled := s.stalled
	s.stalled = nil
	s.mu.Unlock()
	for _, do := range stalled {
		do()
	}
	return len(stalled)
}
