import { useRef, useState } from 'preact/hooks'
import { t } from '../i18n/i18n'
import { formatDuration } from './clock'
import { Icon } from './icon'

/** AudioPlayer plays a voice message. */
export function AudioPlayer({ src, name, fail }: { src: string; name: string; fail: () => void }) {
  const audio = useRef<HTMLAudioElement>(null)
  const [playing, setPlaying] = useState(false)
  const [at, setAt] = useState(0)
  const [length, setLength] = useState(0)
  const toggle = () => {
    const a = audio.current!
    if (a.paused) void a.play().catch(fail)
    else a.pause()
  }
  const measured = () => {
    const { duration } = audio.current!
    if (Number.isFinite(duration)) setLength(duration)
  }
  return (
    <div class="player" role="group" aria-label={name}>
      <audio ref={audio} src={src} preload="metadata" onPlay={() => setPlaying(true)} onPause={() => setPlaying(false)} onEnded={() => setAt(0)} onTimeUpdate={() => setAt(audio.current!.currentTime)} onLoadedMetadata={measured} onDurationChange={measured} onError={fail} />
      <button type="button" class="round primary" aria-label={t(playing ? 'pause' : 'play')} onClick={toggle}><Icon name={playing ? 'pause' : 'play'} /></button>
      <input type="range" min={0} max={length || 1} step={0.1} value={at} aria-label={t('position')} aria-valuetext={formatDuration(at)} onInput={(e) => (audio.current!.currentTime = Number(e.currentTarget.value))} />
      <span class="player-time">{formatDuration(at || length)}</span>
    </div>
  )
}
