// sum prints the sum of the squares of its arguments and ends with it as exit code. A share that the container was given is named, too.
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	sum := 0
	for _, arg := range os.Args[1:] {
		n, err := strconv.Atoi(arg)
		if err != nil {
			fmt.Println(err)
			os.Exit(125)
		}
		sum += n * n
	}
	fmt.Println("sum of squares", sum)
	if share := os.Getenv("QM_SHARE"); share != "" {
		fmt.Println("on share", share)
	}
	os.Exit(sum)
}
