package main

import "time"

const (
	// defaultWait is how long a command waits for an outcome: as long as a
	// destination takes that declares nothing about itself.
	defaultWait = time.Minute
	// grace is how long a worker that was told to stop lets its sends and reads
	// end: longer than one send and one read may take by default. What is not
	// done by then is taken up by another worker when its lease has ended.
	grace = 50 * time.Second
	// maxWaiting bounds the list of what waits for a person: nobody reads
	// more, and what is left out is said.
	maxWaiting = 1000
	// maxUnsettled bounds what is counted after a resume.
	maxUnsettled = 1000
	// probeTime bounds the probe of one destination.
	probeTime = 10 * time.Second
)
