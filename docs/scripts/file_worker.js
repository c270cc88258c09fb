// Runs the search worker in a hidden frame where browsers allow no workers: in a site that is opened as a file.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    onmessage = null
    onerror = null
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.documentElement.appendChild(frame)
      this.frame = frame
      this.scope = frame.contentWindow
      this.waiting = []
      this.scope.postMessage = data => this.receive("message", { data: structuredClone(data) })
      this.scope.addEventListener("error", event => this.receive("error", { message: event.message }))
      const script = frame.contentDocument.createElement("script")
      script.src = url
      script.onload = () => this.start()
      script.onerror = () => this.receive("error", { message: `cannot load ${url}` })
      frame.contentDocument.body.appendChild(script)
    }
    start() {
      const waiting = this.waiting
      this.waiting = null
      for (const data of waiting) this.postMessage(data)
    }
    receive(type, members) {
      const event = Object.assign(new Event(type), members)
      setTimeout(() => { // as a worker answers: never inside of the call that asked
        this.dispatchEvent(event)
        this[`on${type}`]?.(event)
      })
    }
    postMessage(message) {
      if (this.waiting) {
        this.waiting.push(message)
        return
      }
      const data = structuredClone(message)
      setTimeout(() => this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
