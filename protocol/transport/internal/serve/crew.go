package serve

import (
	"sync"
	"time"
)

// workerLinger is the least time that an idle worker waits for another task; the most is twice that.
const workerLinger = time.Second

// A crew is a pool of worker goroutines. Handling a request needs a deep stack: a new goroutine would have to grow it
// each time, and each of the ten thousand goroutines that read connections would keep one. The worker that finished
// last gets the next task, so that surplus workers stay idle and end.
type crew struct {
	mu    sync.Mutex // guards the fields below, and the rounds of workers
	idle  []*worker  // in the order in which they became idle
	round int        // how often dismissIdle ran
	timed bool       // dismissIdle is scheduled
	ended bool
}

type worker struct {
	tasks chan func() // holds at most one task; nil ends the worker
	round int         // the round in which it became idle
}

// giveTask passes a task to an idle worker. It returns false if no worker is idle.
func (c *crew) giveTask(task func()) bool {
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

// runTasks runs a task, and then the tasks that are passed to this worker.
func (c *crew) runTasks(task func()) {
	w := &worker{tasks: make(chan func(), 1)}
	for ; task != nil; task = <-w.tasks {
		task()
		if !c.restWorker(w) {
			return
		}
	}
}

// restWorker makes a worker idle. It returns false if there will be no more tasks.
func (c *crew) restWorker(w *worker) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	w.round = c.round
	c.idle = append(c.idle, w)
	if !c.timed {
		c.timed = true
		time.AfterFunc(workerLinger, c.dismissIdle)
	}
	return true
}

// dismissIdle ends the workers that have been idle since the previous round.
func (c *crew) dismissIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.idle) && c.idle[n].round < c.round {
		c.idle[n].tasks <- nil
		n++
	}
	c.idle = append([]*worker(nil), c.idle[n:]...) // a new slice, so that memory is freed after a peak
	c.round++
	if c.timed = len(c.idle) > 0; c.timed {
		time.AfterFunc(workerLinger, c.dismissIdle)
	}
}

// endAll ends all workers; busy ones end after their task.
func (c *crew) endAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, w := range c.idle {
		w.tasks <- nil
	}
	c.idle = nil
}
