package master

import (
	"errors"
	"sync"
	"testing"
)

// TestKeysAreStoredAside: sign-ins whose keys are being stored leave their turns to others, and take them again afterwards.
func TestKeysAreStoredAside(t *testing.T) {
	m, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	turns := cap(m.authTurns)
	full := errors.New("disk full")
	gate := make(chan struct{})
	var storing, all sync.WaitGroup
	storing.Add(2 * turns)
	for range 2 * turns {
		all.Go(func() {
			m.authTurns <- struct{}{}
			err := m.aside(func() error { storing.Done(); <-gate; return full })
			if !errors.Is(err, full) {
				t.Errorf("stored with error %v", err)
			}
			<-m.authTurns
		})
	}
	storing.Wait() // more than there are turns: none waits for one
	if n := len(m.authTurns); n != 0 {
		t.Errorf("%d turns are taken while keys are stored", n)
	}
	close(gate)
	all.Wait()
	m.authTurns <- struct{}{}
	func() {
		defer func() { _ = recover() }()
		_ = m.aside(func() error { panic("in the store") })
	}()
	if n := len(m.authTurns); n != 1 {
		t.Errorf("%d turns are taken after a panic, want the one of who panicked", n)
	}
}
