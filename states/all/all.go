// Package all registers every state module of brine. Each module has a file of its own with a build tag: -tags custom leaves
// all of them out but those that are named (states.test) or all with -tags custom,states.
package all
