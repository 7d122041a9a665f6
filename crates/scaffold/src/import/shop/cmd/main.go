package main

func main() {
	start(Options{
		LeaderElectionID: "5ca1ab1e.example.com",
	})
}
