"""`python -m interlock` is the `interlock` command."""

from .cli.main import main

if __name__ == "__main__":
    main()
