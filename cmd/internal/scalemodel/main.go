// Scalemodel prints the table of sizes of docs/scale.md: what masters and their database need for 1,000 to 1,000,000
// minions. It multiplies what "make scale" measured for one minion, one sign-in, one job and one return; model.go has
// these figures. A test compares the page with what it prints.
//
// Usage, from the root of the repository:
//
//	go run ./cmd/internal/scalemodel
package main

import "fmt"

func main() { fmt.Print(table()) }
