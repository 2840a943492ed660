//go:build interop && !linux

package modules_test

import "testing"

const inHost = "BRINE_STOCK_IN_HOST"

type host struct{}

func (*host) fresh(*testing.T) {}

func runHostCases(t *testing.T) { t.Error("cases that change the host need Linux") }

func runInHost(t *testing.T, _ func(string) []stockCase) { runHostCases(t) }
