//go:build !linux

package main

import (
	"errors"
	"time"
)

func processorTime(int) (time.Duration, error) {
	return 0, errors.New("cannot read the processor time of a daemon: " +
		"only Linux has a clock for each process")
}
