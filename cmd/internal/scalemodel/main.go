// Scalemodel prints the table of sizes in docs/scale.md: what masters and their database need for 1,000 to 1,000,000
// minions. It multiplies the costs of one minion, sign-in, job and return that "make scale" measured; model.go
// contains these numbers. A test compares the page with the output.
//
// Usage, from the root of the repository:
//
//	go run ./cmd/internal/scalemodel
package main

import "fmt"

func main() { fmt.Print(table()) }
