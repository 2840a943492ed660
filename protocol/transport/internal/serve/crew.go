package serve

import (
	"sync"
	"time"
)

// workerLinger is how long a worker waits for another task: so long, or twice.
const workerLinger = time.Second

// crew is the goroutines that have done a task and wait for another one: what handles a request needs a deep stack, which a fresh goroutine
// would have to grow each time, and each of ten thousand that read connections would keep. The one that worked last is the next to
// work, so that those that are too many have nothing to do, and end.
type crew struct {
	mu    sync.Mutex // guards the fields below, and the rounds of workers
	idle  []*worker  // in the order in which they came to rest
	round int        // how often dismiss has been
	timed bool       // it will be again
	ended bool
}

type worker struct {
	tasks chan func() // has one at most; nil ends the worker
	round int         // in which it came to rest
}

// give hands a task to a worker that rests, if there is one.
func (c *crew) give(task func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.idle) - 1
	if last < 0 {
		return false
	}
	c.idle[last].tasks <- task
	c.idle[last] = nil
	c.idle = c.idle[:last]
	return true
}

// work does a task, and those that are given to it afterwards.
func (c *crew) work(task func()) {
	w := &worker{tasks: make(chan func(), 1)}
	for ; task != nil; task = <-w.tasks {
		task()
		if !c.rest(w) {
			return
		}
	}
}

// rest makes a worker wait for a task. It is false when there will be none.
func (c *crew) rest(w *worker) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	w.round = c.round
	c.idle = append(c.idle, w)
	if !c.timed {
		c.timed = true
		time.AfterFunc(workerLinger, c.dismiss)
	}
	return true
}

// dismiss ends the workers that have rested since the last time.
func (c *crew) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.idle) && c.idle[n].round < c.round {
		c.idle[n].tasks <- nil
		n++
	}
	c.idle = append([]*worker(nil), c.idle[n:]...) // what a storm needed is given back
	c.round++
	if c.timed = len(c.idle) > 0; c.timed {
		time.AfterFunc(workerLinger, c.dismiss)
	}
}

// end ends all workers, those that work when they are done.
func (c *crew) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, w := range c.idle {
		w.tasks <- nil
	}
	c.idle = nil
}
