// sum prints the sum of the squares of its arguments and ends with it as exit code, after QM_SLEEP. A share or cards that the container was
// given are named, too.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
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
	if cards := os.Getenv("NVIDIA_VISIBLE_DEVICES"); cards != "" {
		fmt.Println("on cards", cards)
	}
	if sleep, err := time.ParseDuration(os.Getenv("QM_SLEEP")); err == nil {
		time.Sleep(sleep)
	}
	os.Exit(sum)
}
