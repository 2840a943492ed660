package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return store.NewMemory() })
}

func TestMulti(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return store.Multi(store.NewMemory(), store.NewMemory()) })
}

func TestMemoryForgetsTheOldest(t *testing.T) {
	s := store.NewMemory()
	for i := range store.MemoryLimit + 5 {
		if err := s.SaveJob(t.Context(), store.Job{JID: fmt.Sprintf("%020d", i), Created: time.Unix(int64(i), 0)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Job(t.Context(), fmt.Sprintf("%020d", 4)); err == nil {
		t.Fatal("the fifth job is still there")
	}
	if _, err := s.Job(t.Context(), fmt.Sprintf("%020d", 5)); err != nil {
		t.Fatal(err)
	}
}
