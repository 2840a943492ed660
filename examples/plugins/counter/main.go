// Command counter is the module "counter": a program in Go that reports progress and ends in good order when it is told to.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const description = `{"protocol": 1, "doc": "Counts.", "functions": {"up": {
	"doc": "Count up to a number, with a pause after each.",
	"params": [
		{"name": "to", "type": "integer", "minimum": 1, "maximum": 1000000},
		{"name": "pause", "type": "number", "minimum": 0, "default": 0.01}
	],
	"messages": true,
	"examples": [
		{"args": [3], "return": 3},
		{"args": [1000000], "kwargs": {"pause": 1}, "cancel": true}
	]}}}`

// message is a line in either direction.
type message struct {
	Type    string `json:"type"`
	Value   any    `json:"value,omitempty"`
	Item    any    `json:"item,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Message string `json:"message,omitempty"`
}

func send(m message) { _ = json.NewEncoder(os.Stdout).Encode(m) }

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "describe":
		fmt.Println(description)
	case len(os.Args) == 3 && os.Args[1] == "call" && os.Args[2] == "up":
		os.Exit(up())
	default:
		fmt.Fprintln(os.Stderr, "usage: counter describe | counter call up")
		os.Exit(64)
	}
}

func up() int {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	var call struct {
		Args struct {
			To    int     `json:"to"`
			Pause float64 `json:"pause"`
		} `json:"args"`
	}
	line, err := bufio.NewReader(os.Stdin).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &call)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "<3>cannot read the call:", err)
		return 1
	}
	for i := 1; i <= call.Args.To; i++ {
		send(message{Type: "progress", Item: i})
		select {
		case <-end:
			fmt.Fprintln(os.Stderr, "<4>stopped at", i)
			return 3
		case <-time.After(time.Duration(call.Args.Pause * float64(time.Second))):
		}
	}
	send(message{Type: "return", Value: call.Args.To})
	return 0
}
