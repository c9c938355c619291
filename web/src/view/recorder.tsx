import type { Recording } from '@hermes-mobile/sdk/mic'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { formatDuration } from './clock'
import { loudness } from './agentAvatar'
import { Icon } from './icon'
import { showError, showToast } from './toast'

/** Recorder records a voice message. done closes it. A recording of the maximum length is sent. */
export function Recorder({ client, done }: { client: Client; done: () => void }) {
  const recording = useRef<Recording>(undefined)
  const [seconds, setSeconds] = useState(0)
  const [ready, setReady] = useState(false)

  useEffect(() => {
    let over = false
    const start = async () => {
      if (!navigator.mediaDevices?.getUserMedia) throw new Error('microphoneNeedsHttps')
      const { record } = await import('../conversation/microphone')
      const made = await record((level) => (loudness.value = level))
      if (over) return made.cancel()
      recording.current = made
      setReady(true)
      const wav = await made.wav
      if (wav.length <= 44) return // it was discarded, or is empty
      if (recording.current === made) {
        recording.current = undefined
        showToast(t('recordingFull'))
        done()
      }
      await client.sender.sendRecording(wav).catch(showError)
    }
    start().catch((error: Error) => {
      showToast(t(error.message === 'microphoneNeedsHttps' ? 'microphoneNeedsHttps' : 'noMicrophone'))
      if (!over) done()
    })
    return () => {
      over = true
      recording.current?.cancel()
      loudness.value = undefined
    }
  }, [])

  useEffect(() => {
    if (!ready) return
    const began = Date.now()
    const timer = setInterval(() => setSeconds((Date.now() - began) / 1000), 250)
    return () => clearInterval(timer)
  }, [ready])

  const send = () => {
    const made = recording.current
    recording.current = undefined
    void made?.stop()
    done()
  }

  return (
    <div class="recorder" role="group" aria-label={t('recording')} onKeyDown={(e) => e.key === 'Escape' && done()}>
      <button type="button" class="round" aria-label={t('discardRecording')} onClick={done}><Icon name="trash" /></button>
      <span class="recorder-text"><span class="dot" />{formatDuration(seconds)}<Level /></span>
      <button type="button" class="round primary" aria-label={t('sendRecording')} disabled={!ready} onClick={send} ref={(button) => { if (ready && document.activeElement === document.body) button?.focus() }}><Icon name="send" /></button>
    </div>
  )
}

function Level() {
  return <meter min={0} max={1} value={loudness.value ?? 0} aria-hidden="true" />
}
