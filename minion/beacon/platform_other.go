//go:build !linux

package beacon

func platformKinds() []*Kind { return nil }
